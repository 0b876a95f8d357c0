"""The plain interpreter: what a document means, node by node with the kernels, and by finite differences.

Deliberately naive and independent of linking, materialize and the runtime, so that they can be held against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tidu_cli.graph.graph import Document, Externals, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import RecordType, TensorType, Type, storage_dtype
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.vocabulary import PrimitiveSet

Array = Any
"""An array, held in the storage dtype of its type; of a record the tuple of its fields, None for zero ones."""
Values = dict[Key, Array]


def every_value(document: Document, given: Mapping[Key, Array], primitives: PrimitiveSet = BUILTIN) -> list[list[Array | None]]:
    """The local values of each graph. What depends on an input that is not given, or on a detached value, is None."""
    bound = {b.key: (b.graph, b.value) for b in document.bindings}
    kernels: dict[int, Any] = {}
    by_graph: list[list[Array | None]] = []
    for graph in document.graphs:
        values: list[Array | None] = []
        for i in graph.inputs:
            if i.key in bound:
                values.append(by_graph[bound[i.key][0]][bound[i.key][1]])
            else:
                values.append(stored(i.type, given[i.key]) if i.key in given else None)
        external = [None if g == Externals.DETACHED else by_graph[g][v] for g, v in graph.external]
        for node, code in enumerate(graph.code):
            case = graph.cases[code]
            if code not in kernels:
                kernels[code] = primitives[case.op].evaluation.kernel(np, case.attrs, case.operands, case.results)
            operands = [values[a] if a >= 0 else external[-1 - a] for a in graph.operands(node)]
            if any(x is None for x in operands):
                values += [None] * len(case.results)
                continue
            results = kernels[code](*operands)
            for x, type_ in zip([results] if len(case.results) == 1 else results, case.results, strict=True):
                require_type(x, type_, graph.describe(node))
                values.append(x if isinstance(type_, RecordType) else np.asarray(x))
        by_graph.append(values)
    return by_graph


def evaluate(
    document: Document, given: Mapping[Key, Array], keys: Sequence[Key] = (), primitives: PrimitiveSet = BUILTIN
) -> Values:
    """The outputs of the head; or those of these keys, of the latest graph that has them. Null outputs are zeros."""
    by_graph = every_value(document, given, primitives)
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
        value = by_graph[g][a] if a >= 0 else by_graph[external.graph[-1 - a]][external.value[-1 - a]]
        assert value is not None, f"output '{key}' depends on an input that is not given"
        require_type(value, output.type, f"output '{key}'")
        out[key] = filled(output.type, value)
    return out


def numpy_dtype_of(type_: TensorType) -> Any:
    return numpy_dtype(np, storage_dtype(type_.dtype))


def stored(type_: Type, value: Array) -> Array:
    if isinstance(type_, RecordType):
        return tuple(None if x is None else stored(t, x) for (_, t), x in zip(type_.fields, value, strict=True))
    return np.asarray(value, numpy_dtype_of(type_))


def require_type(value: Array, type_: Type, place: object) -> None:
    if isinstance(type_, RecordType):
        assert isinstance(value, tuple) and len(value) == len(type_.fields), f"{place}: {value} is no {type_}"
        for x, (name, t) in zip(value, type_.fields, strict=True):
            if x is not None:
                require_type(x, t, f"{place}.{name}")
        return
    assert np.shape(value) == type_.shape, f"{place}: {np.shape(value)} is not {type_}"
    assert np.asarray(value).dtype == numpy_dtype_of(type_), f"{place}: {np.asarray(value).dtype}"


def filled(type_: Type, value: Array) -> Array:
    """The value with zeros for what is structurally zero."""
    if value is None:
        return zeros(type_)
    if isinstance(type_, RecordType):
        return tuple(filled(t, x) for (_, t), x in zip(type_.fields, value, strict=True))
    return value


def tree(function: Callable[..., Any], *values: Array) -> Array:
    """A function of arrays applied to each array of records."""
    if isinstance(values[0], tuple):
        return tuple(tree(function, *parts) for parts in zip(*values, strict=True))
    return function(*values)


def zeros(type_: Type) -> Array:
    if isinstance(type_, RecordType):
        return tuple(zeros(t) for _, t in type_.fields)
    return np.zeros(type_.shape, numpy_dtype_of(type_))


def random_value(type_: Type, rng: np.random.Generator) -> Array:
    """Generic values: no two equal, none at a kink."""
    if isinstance(type_, RecordType):
        return tuple(random_value(t, rng) for _, t in type_.fields)
    if type_.dtype.startswith("datetime"):
        return rng.integers(-(10**6), 10**6, type_.shape)
    if type_.dtype == "bool":
        return rng.integers(0, 2, type_.shape).astype(bool)
    if type_.dtype[0] in "iu":
        return rng.integers(0, 5, type_.shape).astype(numpy_dtype(np, type_.dtype))
    x = rng.uniform(-1.5, 1.5, type_.shape)
    if type_.complex:
        x = x + 1j * rng.uniform(-1.5, 1.5, type_.shape)
    return np.asarray(x).astype(numpy_dtype_of(type_))


def free_inputs(document: Document) -> dict[Key, Type]:
    """The inputs that are not bound, each once, in the order in which the document declares them."""
    bound = {b.key for b in document.bindings}
    return {i.key: i.type for graph in document.graphs for i in graph.inputs if i.key not in bound}


def random_inputs(document: Document, seed: int) -> Values:
    rng = np.random.default_rng(seed)
    return {key: random_value(type_, rng) for key, type_ in free_inputs(document).items()}


def inner(a: Array, b: Array) -> float:
    """The product that transpose is the adjoint for: the sum of Re(conj(a) b). A field that is None is zero."""
    if a is None or b is None:
        return 0.0
    if isinstance(a, tuple):
        return sum(inner(x, y) for x, y in zip(a, b, strict=True))
    return float(np.sum(np.real(np.conj(a) * b)))


def difference_quotient(document: Document, at: Values, direction: Mapping[Key, Array], h: float = 1e-2) -> Values:
    """The directional derivative of the head's outputs by central differences and three Richardson steps."""

    def central(step: float) -> Values:
        up = evaluate(document, {**at, **{k: tree(lambda x, t: x + step * t, at[k], v) for k, v in direction.items()}})
        down = evaluate(document, {**at, **{k: tree(lambda x, t: x - step * t, at[k], v) for k, v in direction.items()}})
        return {k: tree(lambda a, b: (a - b) / (2 * step), up[k], down[k]) for k in up}

    rows = [central(h / 2**k) for k in range(4)]
    for order in range(1, 4):
        weight = 4.0**order
        rows = [{k: tree(lambda x, y, w=weight: (w * y - x) / (w - 1), a[k], b[k]) for k in a} for a, b in pairwise(rows)]
    return rows[0]
