"""Documents with open sizes as models: what onnxruntime computes of them at each size, and that it warns of nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnxruntime
import pytest

import tidu_cli as api
from tests.onnx.operators.evaluators import difference
from tests.onnx.sizes.open_models import MODELS
from tests.onnx.writing.lowered import LONG
from tests.onnx.writing.written import require_round_trip
from tests.tiers import few
from tidu_cli.adapters.numpy.api import trace
from tidu_cli.adapters.onnx.contents import Choices
from tidu_cli.adapters.onnx.loading import loaded
from tidu_cli.adapters.onnx.reading.importer import import_model
from tidu_cli.adapters.onnx.writing.model import onnx_bytes
from tidu_cli.checking.numeric.trials import draw, example_cases, of_operand, one_node_document
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.open_sizes import open_names
from tidu_cli.graph.sizes.names import substituted
from tidu_cli.graph.sizes.reading import parse_size
from tidu_cli.graph.types import FLOATS
from tidu_cli.lax.vocabulary import BUILTIN


def session(data: bytes) -> Any:
    """A session that says what it has to say, on stderr."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def run(at: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs by name."""
    names = [o.name for o in at.get_outputs()]
    return dict(zip(names, at.run(None, {i.name: given[i.name] for i in at.get_inputs()}), strict=True))


def drawn(document: Any, sizes: Mapping[str, int], within: Any = None) -> dict[str, Any]:
    """Inputs at these sizes; integers are places along axes of the least."""
    rng = np.random.default_rng(sum(sizes.values()))
    given: dict[str, Any] = {}
    for k, i in enumerate(document.free_inputs):
        type_ = i.type.with_shape(tuple(substituted(n, sizes) for n in i.type.shape))
        if type_.dtype in FLOATS:
            given[str(i.key)] = draw(rng, type_, (within and of_operand(within, k) if not i.key.path else None) or (0.2, 1.5))
        else:
            given[str(i.key)] = rng.integers(0, 2 if type_.dtype == "bool" else min(sizes.values()), type_.shape).astype(
                {"bool": "?", "i32": "i4"}[type_.dtype]
            )
    return given


def derived(document: Any, wrt: Any = None) -> list[Any]:
    """The document, its gradient, and the gradient of that in the first of its outputs."""
    wrt = wrt or [str(i.key) for i in document.free_inputs if i.type.dtype in FLOATS]
    gradient = api.vjp(document, wrt, str(document.head.outputs[0].key))
    return [document, gradient, api.vjp(gradient, wrt, str(gradient.head.outputs[0].key))]


# Special functions.


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("op", sorted(LONG))
def test_special_functions_run_at_each_size(op: str, dtype: str) -> None:
    """As evaluation here, and, but for those that are long, to the bit as files of fixed sizes; derivatives likewise."""
    example, case = next(
        (e, c)
        for e, c in example_cases(BUILTIN, BUILTIN[op])
        if c.results[0].dtype == dtype and len({t.shape for t in c.operands}) == 1
    )
    n = parse_size("N")
    opened = BUILTIN.case(op, case.attrs, None, [t.with_shape((n, 3)) for t in case.operands])
    documents, is_long = [one_node_document(opened)], op.endswith(("_grad", "_grad_a", "_inv"))
    if "_grad" not in op:
        documents = derived(documents[0], f"x{len(case.operands) - 1}")[: 2 if is_long else 3]
    for document in documents:
        at = session(onnx_bytes(document))
        for number in (1, 2, 5, 64):
            given = drawn(document, {"N": number}, example.within)
            found = run(at, given)
            assert difference(document, found, given) == "", number
            if number == 2 and not is_long:
                fixed = run(session(onnx_bytes(api.specialize(document, size={"N": 2}))), given)
                assert {k: x.tobytes() for k, x in found.items()} == {k: x.tobytes() for k, x in fixed.items()}


# Programs.


def gates(u: Any, x: Any, w: Any) -> Any:
    """Steps of a recurrent network, which fill arrays and repeat numbers along axes."""

    def step(h: Any, x: Any) -> Any:
        z = 1 / (1 + np.exp(-(x @ w + h @ u)))
        return (1 - z) * h + z * np.tanh(x @ w) / np.sum(h * h + 1.0, -1, keepdims=True), np.max(z)

    return api.scan(step, np.zeros((x.shape[1], 3)), x)[1].sum()


def after_the_first(h: Any, x: Any) -> Any:
    """A loop that has no steps where N is 1."""
    last, along = api.scan(lambda h, x: (np.tanh(h + x), h * x / x.shape[0]), h, x[1:])
    return last.sum() + along.sum()


def cumulative(x: Any) -> Any:
    return np.sum(np.cumsum(x[1:] * x[:-1]) * np.cumprod(x[1:]))


def either(x: Any, h: Any, p: Any) -> Any:
    """Branches that read an array and a part of it, and one of them loops."""
    return api.cond(
        p,
        lambda a, b, h: np.sum(b * api.scan(lambda h, a: (np.sin(h) * a, np.sum(h)), h, a)[0]),
        lambda a, b, h: np.sum(a[::-1] * a) - np.sum(b) / a.shape[0],
        x * 2,
        (x * 2)[0],
        h,
    )


def of_one_size(x: Any, p: Any) -> Any:
    """Branches that read an array and a part of it."""
    return api.cond(p, lambda a, b: np.sum(a) + np.sum(b * a), lambda a, b: np.sum(a * a) - np.sum(b), x * 2, (x * 2)[:1])


def in_steps_of_branches(x: Any, h: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = api.cond(np.sum(x) > 0.9 * x.shape[0], lambda h, x: np.sin(h) * x, lambda h, x: h * x[::-1] + np.mean(x), h, x)
        return h, np.sum(h)

    return api.scan(step, h, x)[1].sum()


def contracted(x: Any, y: Any, z: Any) -> Any:
    return np.sum(np.einsum("ni,nmj,mik->kj", x, y, z) ** 2)


def windowed(x: Any) -> Any:
    """Rows with those before and after them, none of which is there where N is 1."""
    return np.sum((np.pad(x, ((1, 1), (0, 0)))[2:] - x) ** 2) + np.sum(np.max(x[1:], axis=0, initial=-9.0)) / x.shape[0]


def sorted_rows(x: Any) -> Any:
    return np.sum(np.sort(x, axis=0) * np.arange(x.shape[0])[:, None])


def picked(x: Any, i: Any) -> Any:
    return np.sum(np.take(x, i, axis=0) ** 2 * x[-1]) * np.take(x, np.argmax(x[:, 0]), axis=0)[0]


def joined(x: Any) -> Any:
    return np.sum(np.sin(x[0:2])) + np.sum(x[2:5] ** 3) + np.sum(np.exp(x[5:6]))


PROGRAMS: dict[str, tuple[Any, list[str]]] = {
    "gates": (gates, ["f64[3,3]", "f64[M,N,2]", "f64[2,3]"]),
    "gates of fixed sizes": (gates, ["f64[3,3]", "f64[4,5,2]", "f64[2,3]"]),
    "a loop of no steps": (after_the_first, ["f64[M]", "f64[N,M]"]),
    "cumulative": (cumulative, ["f64[N]"]),
    "either": (either, ["f64[N,M]", "f64[M]", "bool[]"]),
    "either of one size": (of_one_size, ["f64[3]", "bool[]"]),
    "branches in steps": (in_steps_of_branches, ["f64[M,N]", "f64[N]"]),
    "contracted": (contracted, ["f64[N,2]", "f64[N,M,3]", "f64[M,2,2]"]),
    "windowed": (windowed, ["f64[N,3]"]),
    "sorted": (sorted_rows, ["f64[N,2]"]),
    "picked": (picked, ["f64[N,3]", "i32[M]"]),
    "joined": (joined, ["f64[6]"]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run_at_each_size_and_nothing_is_said_of_them(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """From the least sizes on. What is written is read as what it was written of."""
    function, types = PROGRAMS[name]
    for document in derived(trace(function, *types, name="f")):
        at = session(onnx_bytes(document))
        require_round_trip(document)
        for n, m in ((1, 1), (2, 5), (4, 3)) if open_names(document) else ((2, 2),):
            given = drawn(document, {"N": n, "M": m})
            assert difference(document, run(at, given), given) == "", (n, m)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("op", ["reduce_window_sum", "reduce_window_max", "reduce_window_min"])
def test_windows_are_padded_by_what_sizes_say(op: str) -> None:
    """As many windows as steps fit into an axis; derivatives in both modes, whose places are those in what is padded."""
    attrs = {"window_dimensions": [1, 3], "window_strides": [1, 2], "padding": [[0, 0], ["1-(N+1)%2", 1]]}
    graph = {
        "name": "f",
        "inputs": [{"key": "x", "type": "f32[2,N]"}],
        "nodes": [{"op": op, "inputs": [0], "attrs": {**attrs, "base_dilation": [1, 1], "window_dilation": [1, 1]}}],
        "outputs": [{"key": "y", "value": 1}],
    }
    document, _ = parse_document(json.dumps({"tidu": 1, "graphs": [graph]}).encode(), "f.json")
    for made in (document, api.vjp(document, "x", "y"), api.jvp(document, "x", "y")):
        at = session(onnx_bytes(made))
        for n in (1, 2, 5, 8):
            given = drawn(made, {"N": n})
            assert difference(made, run(at, given), given) == "", n


@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_said_of_models(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    document = import_model(loaded(MODELS[name][0]().SerializeToString()), Choices()).document
    for made in (document, gradient := api.vjp(document, "x", "score"), api.jvp(gradient, "x")):
        session(onnx_bytes(made))
    assert capfd.readouterr().err == ""


def test_what_has_no_form_needs_a_number() -> None:
    """And no bound, which would not help."""
    case = next(c for _, c in example_cases(BUILTIN, BUILTIN["triangular_solve"]) if c.operands[0].rank == 2)
    n = parse_size("N")
    opened = BUILTIN.case(case.op, case.attrs, None, [case.operands[0].with_shape((n, n)), case.operands[1].with_shape((n, n))])
    with pytest.raises(api.TiduError, match="needs a number, and the size N is open"):
        onnx_bytes(one_node_document(opened))


@pytest.mark.parametrize("op", ["regularized_incomplete_beta_inv", "cummax", "igamma"])
def test_nothing_is_said_of_functions(op: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Loops within them, and constants that nothing reads."""
    for _, case in few(example_cases(BUILTIN, BUILTIN[op]), 3):
        if all(t.dtype in ("f32", "f64") for t in case.operands):
            session(onnx_bytes(one_node_document(case)))
    assert capfd.readouterr().err == ""
