"""What `tidu build` makes of NumPy source that tidu wrote is the document: in the normal form of `rereading`, digest by digest."""

from __future__ import annotations

import json
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
from tests.lax.test_batching import drawn
from tests.python_source.rereading import again, identity, normal
from tests.python_source.running import alike, expected, source_of
from tests.python_source.test_open_sizes import PROGRAMS, derived
from tests.python_source.test_primitives import REFUSED
from tests.python_source.test_primitives import examples as examples_of
from tests.python_source.test_programs import FORMAT, SAMPLES, is_plain, sample
from tests.tiers import examples, few
from tidu_cli.adapters.numpy.api import trace
from tidu_cli.adapters.numpy.tracing import build_function
from tidu_cli.adapters.python_source.text import Names
from tidu_cli.adapters.source_code import MARK
from tidu_cli.errors import MissingRuleError, TiduError
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.closed import cases_within
from tidu_cli.graph.open_sizes import open_names
from tidu_cli.graph.sizes.reading import declaring, names_from_file
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.sizing import specialized
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


SMALL = {
    "one row of numbers": (["f64[1,2]"], [
        ("iota", [], {"dtype": "f64", "shape": [1, 2], "dimension": 0}),
        ("constant", [], {"value": {"type": "f64[1,2]", "data": [0.5, 0.5]}}), ("mul", [1, 2], {}),
        ("constant", [], {"value": {"type": "f64[1,2]", "data": [0.25, 0.25]}}), ("add", [3, 4], {}), ("mul", [0, 5], {}),
    ]),
    "a row of what is known": (["f64[2,3]"], [
        ("constant", [], {"value": {"type": "f64[3]", "data": [0.0] * 3}}), ("exp", [1], {}),
        ("broadcast_in_dim", [2], {"shape": [2, 3], "broadcast_dimensions": [1]}), ("mul", [3, 3], {}), ("add", [4, 0], {}),
    ]),
    "a batch of numbers": (["f64[3]", "f64[2,3]"], [
        ("dot_general", [0, 1], {"dimension_numbers": [[[], []], [[0], [1]]]}), ("transpose", [2], {"permutation": [1, 0]}),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_small_documents(name, folder):
    types, nodes = SMALL[name]
    inputs = [{"key": f"x{k}", "type": type_} for k, type_ in enumerate(types)]
    nodes = [dict(zip(("op", "inputs", "attrs"), node, strict=True)) for node in nodes]
    graph = {"name": "f", "inputs": inputs, "nodes": nodes, "outputs": [{"key": "z", "value": len(types) + len(nodes) - 1}]}
    check(parse_document(json.dumps({"tidu": 1, "graphs": [graph]}).encode(), "f")[0], folder, 1)


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
@pytest.mark.parametrize("k", range(len(PROGRAMS)))
def test_open_sizes(k, order, folder):
    function, types = PROGRAMS[k]
    document = derived(trace(function, *types, name="f"), order)
    read = again(document, folder)
    assert [i.type for i in read.head.inputs] == [i.type for i in document.head.inputs]
    assert identity(normal(read)) == identity(normal(document))


OPEN = {
    "sort": (lambda x: np.sort(x, 0), "f64[N,M]"), "det": (np.linalg.det, "f64[N,N]"), "inv": (np.linalg.inv, "f64[N,N]"),
    "slogdet": (lambda x: np.linalg.slogdet(x)[1], "f64[N,N]"), "solve": (np.linalg.solve, "f64[N,N]", "f64[N,M]"),
    "trace": (np.trace, "f64[N,N]"), "tri": (lambda x: x * np.tri(*x.shape), "f64[N,M]"),
    "cholesky": (lambda x: np.linalg.cholesky(x @ x.T + x.shape[0] * np.eye(x.shape[0])), "f64[N,N]"),
    "qr": (np.linalg.qr, "f64[N+3,3]"), "mean": (lambda x: np.mean(np.abs(x) ** 2), "c64[N]"),
    "interp": (lambda x, y: np.interp(y, np.sort(x), x), "f64[N+2]", "f64[M]"), "take": (lambda x: x[np.argmax(x)], "f64[N]"),
    "convolve": (np.convolve, "f64[N]", "f64[3]"),
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN)
def test_gradients_at_open_sizes(name, folder):
    """Whatever is compared with a bound: the same at each size, and the same digests but of what indexes or slides otherwise."""
    function, *types = OPEN[name]
    document = derived(trace(function, *types, name="f"), 1)
    read = again(document, folder)
    if name not in ("sort", "interp", "convolve"):
        assert identity(normal(read)) == identity(normal(document))
    for n in (1, 3):
        of_read, fixed = (specialized(x, {k: n + (k == "M") for k in open_names(document)}, BUILTIN) for x in (read, document))
        values = [drawn(np.random.default_rng(n), i.type, (0.5, 1.5)) for i in fixed.free_inputs]
        for made, due in zip(expected(of_read, values).values(), expected(fixed, values).values(), strict=True):
            alike(made, due, name, 512)


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
    **dict.fromkeys(("split", "add_cotangents", "size"), "have another name in NumPy"),
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
