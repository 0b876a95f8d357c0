"""The plain interpreter: what a document means, node by node with the kernels, and by finite differences.

Deliberately naive and independent of linking, materialize and the runtime, so that they can be held against it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tidu_cli.graph.graph import Document, Externals, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType
from tidu_cli.primitives.builtin import BUILTIN
from tidu_cli.primitives.contract import PrimitiveSet
from tidu_cli.primitives.structural import numpy_dtype

Array = Any
Values = dict[Key, Array]


def every_value(document: Document, given: Mapping[Key, Array], primitives: PrimitiveSet = BUILTIN) -> list[list[Array | None]]:
    """The local values of each graph. What depends on an input that is not given, or on a detached value, is None."""
    bound = {b.key: (b.graph, b.value) for b in document.bindings}
    kernels: dict[int, Any] = {}
    found: list[list[Array | None]] = []
    for graph in document.graphs:
        values: list[Array | None] = []
        for i in graph.inputs:
            if i.key in bound:
                values.append(found[bound[i.key][0]][bound[i.key][1]])
            else:
                values.append(np.asarray(given[i.key], numpy_dtype(np, i.type.dtype)) if i.key in given else None)
        external = [None if g == Externals.DETACHED else found[g][v] for g, v in graph.external]
        for node, code in enumerate(graph.code):
            case = graph.cases[code]
            if code not in kernels:
                kernels[code] = primitives[case.op].kernel(np, case.attrs, case.operands, case.results)
            operands = [values[a] if a >= 0 else external[-1 - a] for a in graph.operands(node)]
            if any(x is None for x in operands):
                values += [None] * len(case.results)
                continue
            results = kernels[code](*operands)
            for x, type_ in zip([results] if len(case.results) == 1 else results, case.results, strict=True):
                assert np.shape(x) == type_.shape, f"{graph.describe(node)}: {np.shape(x)} is not {type_}"
                assert np.asarray(x).dtype == numpy_dtype(np, type_.dtype), f"{graph.describe(node)}: {np.asarray(x).dtype}"
                values.append(np.asarray(x))
        found.append(values)
    return found


def evaluate(
    document: Document, given: Mapping[Key, Array], keys: Sequence[Key] = (), primitives: PrimitiveSet = BUILTIN
) -> Values:
    """The outputs of the head; or those of these keys, of the latest graph that has them. Null outputs are zeros."""
    found = every_value(document, given, primitives)
    last = len(document.graphs) - 1
    places: dict[Key, tuple[int, Output]] = {o.key: (last, o) for o in document.head.outputs}
    if keys:
        everywhere = {o.key: (g, o) for g, graph in enumerate(document.graphs) for o in graph.outputs}
        places = {k: everywhere[k] for k in keys}
    out: Values = {}
    for key, (g, output) in places.items():
        if output.value is None:
            out[key] = zeros(output.type)
            continue
        external = document.graphs[g].external
        a = output.value
        value = found[g][a] if a >= 0 else found[external.graph[-1 - a]][external.value[-1 - a]]
        assert value is not None, f"output '{key}' depends on an input that is not given"
        assert np.shape(value) == output.type.shape
        out[key] = value
    return out


def zeros(type_: TensorType) -> Array:
    return np.zeros(type_.shape, numpy_dtype(np, type_.dtype))


def random_value(type_: TensorType, rng: np.random.Generator) -> Array:
    """Generic values: no two equal, none at a kink."""
    if type_.dtype == "bool":
        return rng.integers(0, 2, type_.shape).astype(bool)
    if type_.dtype[0] in "iu":
        return rng.integers(0, 5, type_.shape).astype(numpy_dtype(np, type_.dtype))
    x = rng.uniform(-1.5, 1.5, type_.shape)
    if type_.complex:
        x = x + 1j * rng.uniform(-1.5, 1.5, type_.shape)
    return np.asarray(x).astype(numpy_dtype(np, type_.dtype))


def free_inputs(document: Document) -> dict[Key, TensorType]:
    """The inputs that are not bound, each once, in the order in which the document declares them."""
    bound = {b.key for b in document.bindings}
    return {i.key: i.type for graph in document.graphs for i in graph.inputs if i.key not in bound}


def random_inputs(document: Document, seed: int) -> Values:
    rng = np.random.default_rng(seed)
    return {key: random_value(type_, rng) for key, type_ in free_inputs(document).items()}


def inner(a: Array, b: Array) -> float:
    """The product that transpose is the adjoint for: the sum of Re(conj(a) b)."""
    return float(np.sum(np.real(np.conj(a) * b)))


def difference_quotient(document: Document, at: Values, direction: Mapping[Key, Array], h: float = 1e-2) -> Values:
    """The directional derivative of the head's outputs by central differences and three Richardson steps."""

    def central(step: float) -> Values:
        up = evaluate(document, {**at, **{k: at[k] + step * v for k, v in direction.items()}})
        down = evaluate(document, {**at, **{k: at[k] - step * v for k, v in direction.items()}})
        return {k: (up[k] - down[k]) / (2 * step) for k in up}

    rows = [central(h / 2**k) for k in range(4)]
    for order in range(1, 4):
        weight = 4.0**order
        rows = [{k: (weight * b[k] - a[k]) / (weight - 1) for k in a} for a, b in pairwise(rows)]
    return rows[0]
