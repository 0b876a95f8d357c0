"""What `tidu build` makes of NumPy source that tidu wrote is the document: in the normal form of `rereading`, digest by digest."""

from __future__ import annotations

import json
import re
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings

import tidu_cli
from tests.c.test_primitives import documented
from tests.c.test_programs import values_for
from tests.control_flow.strategies import looping
from tests.graphs.derived import derivatives
from tests.graphs.strategies import REAL, documents, seeds
from tests.python_source.rereading import again, identity, normal
from tests.python_source.running import alike, expected, function_of, source_of
from tests.python_source.test_open_sizes import PROGRAMS, derived, steps
from tests.python_source.test_primitives import REFUSED
from tests.python_source.test_primitives import examples as examples_of
from tests.python_source.test_programs import FORMAT, SAMPLES, is_plain, sample
from tests.tiers import examples, few
from tidu_cli.adapters.numpy.api import trace
from tidu_cli.adapters.numpy.tracing import build_function
from tidu_cli.adapters.numpy_helpers import MARK
from tidu_cli.adapters.python_source.text import Names
from tidu_cli.errors import MissingRuleError, TiduError
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.closed import cases_within
from tidu_cli.graph.sizes.reading import declaring, names_from_file
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.specializing import specialized
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("read")


def check(document, folder, seed=None):
    """Hold what is read to the document: the same digests, the same keys, the same bits."""
    document = tidu_cli.materialize(document)
    read = again(document, folder)
    assert identity(normal(read)) == identity(normal(document))
    assert [str(i.type) for i in read.head.inputs] == [str(i.type) for i in document.head.inputs]
    assert [i.key.name for i in read.head.inputs] == Names().of_keys(i.key for i in document.head.inputs)
    assert [o.key.name for o in read.head.outputs] == [str(o.key) for o in document.head.outputs]
    if seed is not None:
        same_bits(read, document, values_for(document, seed))


def same_bits(read, document, values):
    for made, due in zip(expected(read, values).values(), expected(document, values).values(), strict=True):
        assert made.dtype == due.dtype
        np.testing.assert_array_equal(made, due)


DIFFER = {"structural_zeros.json"}
"""-0.0 - x, which is written -x."""


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("name", [*SAMPLES, *(f"conformance/valid/{name}.json" for name in FORMAT.split() if name != "keys")])
def test_samples_and_their_derivatives(name, order, folder):
    document = sample(name)
    wrt = [i.key for i in document.head.inputs if i.type.inexact] if is_plain(document) and not document.bindings else []
    try:
        document = transpose(linearize(document, wrt)) if order and wrt else document
        document = linearize(document, wrt) if order == 2 and wrt else document
    except MissingRuleError:
        return
    if is_plain(document) and name.rpartition("/")[2] not in DIFFER:
        check(document, folder, 1)


@settings(max_examples=examples(200, check=20))
@given(documents(makers=REAL, dtypes=("f64", "f32"), shapes=((), (3,), (2, 3))), seeds)
def test_random_documents(folder, document, seed):
    check(document, folder, seed)


@settings(max_examples=examples(100, check=5))
@given(documents(makers=REAL, dtypes=("f64",), max_graphs=2, max_nodes=12))
def test_derivatives_of_random_documents(folder, document):
    for derivative in derivatives(document):
        check(derivative, folder)


def has_empty(document):
    """Whether it has arrays without elements, or loops without steps: source has just zeros of them."""
    cases = list(cases_within(document.cases.cases))
    types = [t for case in cases for t in (*case.operands, *case.results)]
    return any(0 in t.shape for t in types) or any(getattr(case.attrs, "length", 1) == 0 for case in cases)


@settings(max_examples=examples(200, check=10))
@given(looping(), seeds)
def test_random_loops(folder, document, seed):
    assume(is_plain(document) and not has_empty(document))
    check(document, folder, seed)


@settings(max_examples=examples(60, check=4))
@given(looping())
def test_derivatives_of_random_loops(folder, document):
    assume(is_plain(document) and not has_empty(document))
    wrt = [i.key for i in document.free_inputs if i.type.inexact]
    forward = linearize(document, wrt)
    check(forward, folder)
    try:
        backward = transpose(forward)
    except MissingRuleError:
        return
    check(backward, folder)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("k", [k for k, (f, _) in enumerate(PROGRAMS) if f is not steps])  # which indexes, see below
def test_open_sizes(k, order, folder):
    function, types = PROGRAMS[k]
    document = derived(trace(function, *types, name="f"), order)
    read = again(document, folder)
    assert [i.type for i in read.head.inputs] == [i.type for i in document.head.inputs]
    assert identity(normal(read)) == identity(normal(document))


def test_constants_are_padded_to_open_sizes(folder):
    document = derived(trace(lambda x: np.sum(np.concatenate([x, x[:0]]) * x), "f64[N]", name="f"), 1)
    assert "np.pad(np.zeros(0" in source_of(document)
    read, values = again(document, folder), [np.arange(3.0), np.array(2.0)]
    fixed, of_read = (specialized(x, {"N": 3}, BUILTIN) for x in (document, read))
    same_bits(of_read, fixed, values)


@pytest.mark.parametrize("bounds", [{"min": 2}, {"max": 4}, {"multiple_of": 4}])
def test_bounds_of_sizes(bounds, folder):
    """They are kept if types have them, and are no hindrance else."""
    with declaring(names_from_file({"N": bounds})):
        document = trace(lambda x: x * 2, "f64[N]", name="f")
    check(document, folder)
    read = build_function(f"{folder / 'graph.py'}:f", {"x": parse_value_type("f64[N]")})
    assert str(read.head.outputs[0].type) == "f64[N]"
    with pytest.raises(TiduError, match="N is 0, and it is at least"):
        build_function(f"{folder / 'graph.py'}:f", {"x": TensorType("f64", (0,))})


OTHERS = {
    **dict.fromkeys(("split", "squeeze", "expand_dims", "add_cotangents", "size"), "have another name in NumPy"),
    **dict.fromkeys(("optimization_barrier", "reduce_precision", "shift_right_logical"), "change no number, or its bits"),
    **dict.fromkeys(
        ("gather", "scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-max", "scatter-min"), "are indices"
    ),
    **dict.fromkeys(("top_k", "sort"), "sort along"),
    **dict.fromkeys(("conv_general_dilated", "reduce_window_sum", "reduce_window_max", "reduce_window_min"), "are windows"),
    **dict.fromkeys(("select_and_gather_add", "select_and_scatter_add"), "are windows"),
    **dict.fromkeys(("igamma_grad_a", "regularized_incomplete_beta_grad", "zeta_grad"), "are their definitions"),
    **dict.fromkeys(("linear_solve", "root", "fixed_point"), "are what solves them"),
    **dict.fromkeys(("select_n", "broadcast_in_dim", "pad", "svd", "pinv"), "have attrs that say the same"),
    **dict.fromkeys(("pow", "population_count", "argmax", "argmin"), "are of another dtype, which is converted"),
    **dict.fromkeys(("polygamma", "expn", "hyp0f1", "hyp1f1", "hyp2f1", "spherical_bessel_j"), "are of f64, as SciPy has them"),
    **dict.fromkeys(("bessel_j", "bessel_y", "bessel_ie", "bessel_ke"), "are of f64, as SciPy has them"),
}
"""What comes back as other operations, at least in some cases, that give the same."""
UNREAD = {"select_and_scatter_add", "scatter"}
"""What `tidu build` does not read in some cases: it writes at places that are not known."""


@pytest.mark.parametrize("name", [p.name for p in BUILTIN if p.name not in REFUSED])
def test_primitives(name, folder):
    for case, operands in few(list(examples_of(name)), 2 if name in OTHERS else 5):
        document = tidu_cli.materialize(documented([case]))
        try:
            read = again(document, folder)
        except TiduError:
            assert name in UNREAD
            continue
        if name not in OTHERS and not any(t.dtype == "f16" for t in (*case.operands, *case.results)):
            assert identity(normal(read)) == identity(normal(document)), str(case.attrs)
        if name not in {"eigh", "eig", "svd", "qr"}:
            for made, due in zip(expected(read, operands).values(), expected(document, operands).values(), strict=True):
                assert made.dtype == due.dtype
                np.testing.assert_allclose(made, due, 1e-2 if made.dtype == np.float16 else 1e-5, 1e-5)


def ops(document):
    return {document.cases[code].op for code in document.head.code}


def edited(folder, old, new, document):
    """What is read of source that somebody changed."""
    path = folder / "edited.py"
    source = source_of(document)
    assert old in source
    path.write_text(source.replace(old, new))
    (name,) = (i for i in [document.head.name])
    return build_function(f"{path}:{name}", {str(i.key): i.type for i in document.head.inputs})


def test_edited_loops_are_what_they_say(folder):
    document = sample("logistic_map.json")
    read = edited(folder, "1.0 - x", "2.0 - x", document)
    assert [case.op for case in read.cases.cases if case.op == "scan"] == ["scan"]
    values = values_for(document, 1)
    assert expected(read, values)["x"] != expected(document, values)["x"]
    unrolled = edited(folder, "orbit_ks.append(orbit_k)", "orbit_ks.append(orbit_k + k1)", document)
    assert "scan" not in {case.op for case in unrolled.cases.cases}
    np.testing.assert_array_equal(expected(unrolled, values)["orbit"], expected(document, values)["orbit"] + np.arange(10))


def nested(x):
    """Loops in one another whose names are the same, with the constants that they read."""
    table = np.arange(20.0)

    def outer(x, _):
        x, ys = tidu_cli.scan(lambda x, _: (np.sin(x) * table[3:6].sum(), x), x, length=3)
        return x, ys * table[:3]

    x, ys = tidu_cli.scan(outer, x, length=2)
    return x, ys, tidu_cli.while_loop(lambda x: (x * table).sum() < 1, lambda x: x + 0.1, 0.0 * x)


def test_nested_loops(folder):
    check(trace(nested, "f64[]", name="f"), folder, 1)


def test_constants_of_bodies_stay_in_them(folder):
    table = {"type": "f64[20]", "data": [0.5 * k for k in range(20)]}
    nodes = [{"op": "constant", "inputs": [], "attrs": {"value": table}}, {"op": "mul", "inputs": [0, 1]}]
    body = {"inputs": [{"key": "x", "type": "f64[20]"}], "nodes": nodes, "outputs": [{"key": "x", "value": 2}]}
    scan = {"op": "scan", "inputs": [0], "attrs": {"length": 3, "num_consts": 0, "num_carry": 1, "body": body}}
    graph = {"name": "f", "inputs": body["inputs"], "nodes": [scan], "outputs": [{"key": "z", "value": 1}]}
    check(parse_document(json.dumps({"tidu": 1, "graphs": [graph]}).encode(), "f")[0], folder, 1)


EDITS = {
    "a list is begun": ("orbit_ks = []", "orbit_ks = [x]"),
    "a list is read otherwise": ("np.stack(orbit_ks)", "np.stack(orbit_ks[::-1])"),
    "a list is lengthened": ("    orbit = ", "    orbit_ks += [x]\n    orbit = "),
    "a counter is read": ("body(r, x_2)", "body(r * (k1 + 1), x_2)"),
    "steps are skipped": ("range(10)", "range(1, 10)"),
    "more is done": ("x_2, orbit_k = body(r, x_2)", "x_2, orbit_k = body(r, x_2)\n        r = r + 1"),
    "the last item is read": ('"orbit": orbit', '"orbit": orbit * orbit_k'),
    "the last turn is read": ('"orbit": orbit', '"orbit": orbit * k1'),
    "lists are added": ("np.stack(orbit_ks)", "np.stack(orbit_ks + [x_2])"),
    "a list is repeated": ("np.stack(orbit_ks)", "np.stack(orbit_ks * 2)"),
    "a list has something before": ("    for k1", "    orbit_ks.insert(0, r)\n    for k1"),
    "a list loses something": ("    orbit = ", "    orbit_ks.pop()\n    orbit = "),
    "another loop goes on": (
        "    orbit = ",
        "    for k2 in range(5):\n        x_2, orbit_k = body(x_2, r)\n        orbit_ks.append(orbit_k)\n    orbit = ",
    ),
    "a body reads what is carried": ("1.0 - x)", "1.0 - x_2)"),
    "a body reads the counter": ("1.0 - x)", "1.0 - x + k1)"),
    "a body reads the list": ("1.0 - x)", "1.0 - x + len(orbit_ks))"),
    "a body fills a list": (
        "    x_2 = x\n", "    seen = [x]\n    x_2 = x\n", "return r *", "seen.append(x)\n        return seen[-2] * r *"
    ),
    "a body counts": (
        "    x_2 = x\n", "    n = 1\n    x_2 = x\n", "return r *", "nonlocal n\n        n += 1\n        return n * r *"
    ),
    "a body calls what reads what is carried": (
        "    def body", "    def inner(x):\n        return x + x_2\n\n    def body", "1.0 - x)", "1.0 - inner(x))"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_edits_of_loops_are_not_lost(name, folder):
    """What is no loop as tidu writes it is what Python makes of it."""
    document, values = sample("logistic_map.json"), [3.1, 0.2]
    source = source_of(document)
    for old, new in zip(EDITS[name][::2], EDITS[name][1::2], strict=True):
        assert old in source
        source = source.replace(old, new)
    (folder / "edited.py").write_text(source)
    read = build_function(f"{folder / 'edited.py'}:f", {"r": TensorType("f64"), "x": TensorType("f64")})
    due, made = function_of(source)(*values), expected(read, values)
    for key in due:
        np.testing.assert_allclose(made[key], due[key], 1e-13)


LOOPS = {
    "no steps": ("a * b", "y = x", "range(-3)", "y = body(i, y)"),
    "one of NumPy's lengths": ("a * b", "y = x", "range(np.int64(3))", "y = body(i, y)"),
    "another range": ("a * b", "y, range = x, lambda n: [0]", "range(3)", "y = body(i, y)"),
    "another dtype": ("a * b.astype(np.float64)", "y = x", "range(3)", "y = body(i, y)"),
    "another shape": ("np.concatenate([a, b])", "y = x", "range(3)", "y = body(i, y)"),
    "a carry of Python's": ("b * 3", "y = 1", "range(70)", "y = body(i, y)"),
    "a result of Python's": ("2", "y = np.float64(1)", "range(3)", "y = body(i, y)"),
    "a number of Python's": ("a * b", "y, n = x, 2", "range(3)", "y = body(n, y)"),
    "fewer slices": ("a * b", "y = x", "range(2)", "y = body(y, x[k])"),
    "a constant that changes": ("a + b", "y = x", "range(3)", "y = body(y * i, y)"),
    "a list of slices": ("a * b", "y, z = x, [2, 3]", "range(2)", "y = body(y, z[k])"),
    "another shape while it holds": ("np.concatenate([a, b])", "y = x", "", "y = body(i, y)"),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_loops_that_are_no_nodes_are_what_they_say(name, folder):
    """Python runs them, and its numbers have no dtype."""
    body, begun, steps, step = LOOPS[name]
    loop = f"for k in {steps}:" if steps else "while limit(y):"
    lines = ["def body(a, b):", f"    return {body}", "def limit(n):", "    return n.shape[0] < 9", begun, loop, f"    {step}"]
    text = "".join(f"    {line}\n" for line in [*lines, "return y[:3] * x[:2][:1] if np.ndim(y) else x * float(y)"])
    source = f"{MARK}import numpy as np\n\n\ndef f(x, i):\n{text}"
    (folder / "edited.py").write_text(source)
    read = build_function(f"{folder / 'edited.py'}:f", {"x": TensorType("f32", (3,)), "i": TensorType("f32", (3,))})
    values = [np.arange(1, 4, dtype=np.float32), np.array([3, 1, 2], np.float32)]
    alike(expected(read, values)["y"], function_of(source)(*values))


@pytest.mark.parametrize("body", [
    "np.clip(x, None, 1.0)", "np.clip(i, 0, 2.5)", "np.clip(i, 1, 2)", "np.pad(x, 1)", "np.pad(x, ((1, 2),))",
    "np.pad(x, 1, 'edge')", "np.pad(x, ((1, 2), (0, 1)), constant_values=(3, 4))", "np.cumsum(x, axis=None)",
    "np.cumsum(x, axis=-1)",
    "np.cumsum(x, axis=1, dtype=np.float32)", "np.cumsum(i.astype(np.int32), axis=0)", "np.cumprod(i.astype(np.uint8), axis=0)",
    "np.cumsum(i.astype(np.int8), axis=0, dtype=np.int8)", "np.cumsum(x > 1, axis=0)",
    "np.flip(np.cumsum(np.flip(x, 1), axis=0), 1)", "np.flip(np.cumsum(np.flip(x, 1), axis=1), 1)",
    "np.arange(-2, dtype=np.float64)", "np.select([x < 1], [x * 2], x)", "np.select([i < 1, i < 2], [1, i * 2], i * 3.5)",
    "1 / np.sqrt(i)",
    "np.flip(np.cumsum(np.flip(x, -1), axis=-1), -1)", "np.maximum.accumulate(x, axis=-1)",
])  # fmt: skip
def test_edited_expressions_are_what_they_say(body, folder):
    """Also where they look like those of operations that compute something else."""
    source = f"{MARK}import numpy as np\n\n\ndef f(x, i):\n    return {body}\n"
    (folder / "edited.py").write_text(source)
    read = build_function(f"{folder / 'edited.py'}:f", {"x": TensorType("f64", (2, 3)), "i": TensorType("i64", (2,))})
    values = [np.arange(1.0, 7).reshape(2, 3) / 3, np.array([3, 1])]
    alike(expected(read, values)["y"], function_of(source)(*values))


@pytest.mark.parametrize("number", [-1, 0, 1, 2])
def test_edited_branches_are_what_they_say(number, folder):
    """A number that is tested is true unless it is 0."""
    document = trace(lambda n, x: tidu_cli.cond(n > 0, lambda x: x * 2, lambda x: x * 3, x), "i64[]", "f64[]", name="f")
    source = re.sub(r"if \w+:", "if n:", source_of(document))
    (folder / "edited.py").write_text(source)
    read = build_function(f"{folder / 'edited.py'}:f", {"n": TensorType("i64"), "x": TensorType("f64")})
    assert "cond" in ops(read)
    assert expected(read, [number, 1.0])["y"] == (2.0 if number else 3.0)


def test_a_check_of_values_is_not_lost(folder):
    path = folder / "edited.py"
    path.write_text(f"{MARK}def f(x):\n    if x < 0:\n        raise ValueError('less')\n    return x\n")
    with pytest.raises(TiduError, match="a branch on a value"):
        build_function(f"{path}:f", {"x": TensorType("f64")})


def test_edited_helpers_are_what_they_say(folder):
    document = sample("order.json")
    read = edited(folder, "quotient + up.astype(quotient.dtype))", "quotient + 7)", document)
    assert read.head.n_nodes > again(document, folder).head.n_nodes
    assert {"div", "dynamic_slice"} <= ops(again(document, folder))


def test_a_function_that_is_imported_is_read_likewise(folder, monkeypatch):
    document = sample("logistic_map.json")
    (folder / "orbits.py").write_text(source_of(document))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setitem(sys.modules, "orbits", None)
    monkeypatch.delitem(sys.modules, "orbits")
    import orbits

    assert identity(normal(trace(orbits.f, "f64[]", "f64[]"))) == identity(normal(document))
    assert sys.modules["orbits"].f is orbits.f


def test_files_of_others_are_read_as_before(folder):
    path = folder / "own.py"
    path.write_text(
        "def f(x):\n    def body(x):\n        return x * x\n\n    for k in range(3):\n        x = body(x)\n    return x\n"
    )
    read = build_function(f"{path}:f", {"x": TensorType("f64")})
    assert [read.cases[code].op for code in read.head.code] == ["mul"] * 3


@pytest.mark.parametrize("expression", ["-" * 9000 + "x", "x" + " + x" * 20000, "x" + ".T" * 9000])
def test_expressions_that_nest_deeply_are_refused_in_a_line(expression, folder):
    path = folder / "deep.py"
    path.write_text(f"{MARK}def f(x):\n    return {expression}\n")
    with pytest.raises(TiduError, match=r"^[^:]*deep\.py: an expression has too many others within it; give parts of it names$"):
        build_function(f"{path}:f", {"x": TensorType("f64")})


@pytest.mark.parametrize("saved", [
    lambda text: text.replace("\n", "\r\n").encode(), lambda text: b"\xef\xbb\xbf" + text.encode(),
    lambda text: text.replace("    ", "\t").encode(),
])  # fmt: skip
def test_files_that_an_editor_saved_otherwise_are_read_likewise(saved, folder):
    document = sample("logistic_map.json")
    (folder / "saved.py").write_bytes(saved(source_of(document)))
    read = build_function(f"{folder / 'saved.py'}:f", {"r": TensorType("f64"), "x": TensorType("f64")})
    assert identity(normal(read)) == identity(normal(document))
