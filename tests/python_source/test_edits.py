"""NumPy source that somebody edited is read as what it says: where it no longer has the form of a node, as Python runs it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tidu_cli
from tests.c.test_programs import values_for
from tests.python_source.rereading import again
from tests.python_source.running import alike, expected, function_of, source_of
from tests.python_source.test_programs import sample
from tidu_cli.adapters.numpy.api import trace
from tidu_cli.adapters.numpy.tracing import build_function
from tidu_cli.adapters.source_code import MARK
from tidu_cli.errors import TiduError
from tidu_cli.graph.types import TensorType


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("edited")


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
