"""Whether an operator's derivatives are right: against differences of its values in f64, and as adjoints of each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import onnx

import tidu_cli as api
from tests.onnx.operators.node_tests import imported
from tidu_cli.adapters.onnx.contents import as_key
from tidu_cli.graph.graph import Document
from tidu_cli.graph.types import FLOATS, TensorType

Arrays = dict[str, Any]

STEPS = tuple(2.0**-k for k in (8, 10, 12, 14, 16, 18))
SMOOTH = 1e-6
"""How exact the best difference must be, relative to the values: it is not at a kink."""


def one_node(
    op: str,
    inputs: Mapping[str, Any],
    outputs: Sequence[str] = ("y",),
    opset: int = onnx.defs.onnx_opset_version(),
    constants: Sequence[str] = (),
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one node. Inputs with the value None are left out of it; `constants` names those that are initializers."""
    given = {name: np.asarray(x) for name, x in inputs.items() if x is not None}
    node = onnx.helper.make_node(op, [name if name in given else "" for name in inputs], list(outputs), name="n", **attributes)
    graph = onnx.helper.make_graph(
        [node],
        "g",
        [_declared(name, x) for name, x in given.items() if name not in constants],
        [onnx.ValueInfoProto(name=name) for name in outputs if name],
        [onnx.numpy_helper.from_array(x, name) for name, x in given.items() if name in constants],
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=10)


def _declared(name: str, x: Any) -> Any:
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)


def require_right(model: onnx.ModelProto, inputs: Mapping[str, Any], wrt: Sequence[str] = (), seed: int = 0) -> None:
    """Compare the derivatives of a model's float outputs by float inputs (those of `wrt`), at a point away from kinks.

    JVPs along random directions are compared with central differences, VJPs with JVPs as their adjoints. Raises AssertionError.
    """
    given = {name: np.asarray(x) for name, x in inputs.items()}
    document = imported(model, given, cast="f64").document
    point = {str(key): _wide(given[name]) for name in given if (key := as_key(name)) in document.inputs}
    chosen = [str(as_key(name)) for name in wrt] or [name for name, x in point.items() if x.dtype.kind == "f"]
    floats = [str(o.key) for o in document.head.outputs if isinstance(o.type, TensorType) and o.type.dtype in FLOATS]
    assert chosen and floats, f"of {list(point)} no float depends on a float"
    require_derivatives(document, point, chosen, floats, seed=seed)


def require_derivatives(
    document: Document,
    point: Arrays,
    chosen: Sequence[str],
    floats: Sequence[str],
    n_directions: int = 2,
    seed: int = 0,
    reach: float = 1.0,
) -> None:
    """Likewise, of outputs `floats` of a document by inputs `chosen`, all of f64, along so many directions.

    Steps are of `reach`: networks of many kinks have one within what are small steps for others.
    """
    rng = np.random.default_rng(seed)
    function, jvp, vjp = map(_compiled, (document, api.jvp(document, chosen, floats), api.vjp(document, chosen, floats)))
    for _ in range(n_directions):
        along = {name: reach * rng.standard_normal(point[name].shape) for name in chosen}
        moved = jvp(point | {f"{name}@1": v for name, v in along.items()})
        tangents = [np.asarray(moved[f"{name}@1"]) for name in floats]
        _require_differences(function, point, along, floats, tangents)
        back = {name: rng.standard_normal(np.shape(t)) for name, t in zip(floats, tangents, strict=True)}
        pulled = vjp(point | {f"{name}@-1": w for name, w in back.items()})
        _require_adjoint(list(back.values()), tangents, [pulled[f"{name}@-1"] for name in chosen], list(along.values()))


def _wide(x: Any) -> Any:
    return x.astype(np.float64) if x.dtype.kind == "f" or x.dtype.name == "bfloat16" else x


def _compiled(document: Document) -> Callable[[Arrays], dict[str, Any]]:
    """The values of all outputs, planned once for many evaluations, at values among which those of other documents may be."""
    compiled = api.compile(document, engine="numpy")
    declared = compiled.inputs
    return lambda values: compiled({name: x for name, x in values.items() if name in declared})


def _require_differences(
    function: Callable[[Arrays], dict[str, Any]], point: Arrays, along: Arrays, names: Sequence[str], tangents: Sequence[Any]
) -> None:
    """D(h) = (f(x + hv) - f(x - hv)) / 2h errs by O(h²) and rounding: D(h/2) by a third of D(h) - D(h/2), and ε|f|/h."""

    def quotients(h: float) -> list[Any]:
        ahead, behind = (function(point | {k: point[k] + s * h * v for k, v in along.items()}) for s in (1, -1))
        return [(ahead[name] - behind[name]) / (2 * h) for name in names]

    values = function(point)
    differences = {h: quotients(h) for h in STEPS}
    for k, (name, tangent) in enumerate(zip(names, tangents, strict=True)):
        if not tangent.size:
            continue
        scale = max(1.0, np.abs(values[name]).max(), np.abs(tangent).max())
        best = np.inf
        for coarse, fine in pairwise(STEPS):
            bound = np.abs(differences[coarse][k] - differences[fine][k]).max() + 64 * np.finfo(float).eps * scale / fine
            if bound < best:
                best, error = bound, np.abs(differences[fine][k] - tangent).max()
        assert best <= SMOOTH * scale, f"{name} has no derivative here: differences differ by {best}"
        assert error <= best, f"the JVP of {name} is off by {error}, more than {best}"


def _require_adjoint(back: Sequence[Any], tangents: Sequence[Any], pulled: Sequence[Any], along: Sequence[Any]) -> None:
    """<w, Jv> = <Jᵀw, v>, but for the rounding of sums."""
    left = np.concatenate([np.ravel(w * t) for w, t in zip(back, tangents, strict=True)])
    right = np.concatenate([np.ravel(g * v) for g, v in zip(pulled, along, strict=True)])
    scale = max(np.abs(left).sum(), np.abs(right).sum(), 1e-300)
    assert abs(left.sum() - right.sum()) <= 1e-10 * scale, f"<w, Jv> is {left.sum()}, and <J'w, v> {right.sum()}"
