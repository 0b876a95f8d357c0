"""Functions of JAX as documents: how far their values, JVP, VJP and HVP by tidu and by JAX are apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from tests.jax.lowering.compiled import compiled
from tidu_cli.adapters.jax.functions.function import from_jax
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose


def document_of(function: Callable[..., Any], *args: Any) -> Document:
    """The document of a function at these arguments, with inputs x0, x1, …."""
    return from_jax(function, *args, names=[f"x{k}" for k in range(len(args))])


def compared(
    function: Callable[..., Any],
    *args: Any,
    reverse: bool = True,
    second: bool = True,
    forward: bool = True,
    document: Document | None = None,
) -> dict[str, float]:
    """How far values, JVP, VJP and HVP of a function by tidu and by JAX are apart, relative to the largest number."""
    rng = np.random.default_rng(3)
    document = document_of(function, *args) if document is None else document
    keys = [i.key for i in document.head.inputs if i.type.inexact]
    args = [np.asarray(a) for a in args]
    values = {i.key: a for i, a in zip(document.head.inputs, args, strict=True)}
    if not forward:
        return {"value": _distance(_run(document, values), jax.tree.leaves(function(*args)))}
    active = [a.dtype.kind in "fc" for a in args]
    tangents = [_like(rng, a) if act else np.zeros(a.shape, jax.dtypes.float0) for a, act in zip(args, active, strict=True)]
    primal, moved = compiled(lambda xs: jax.jvp(function, tuple(xs), tuple(tangents)))(args)
    primal, moved = (jax.tree.leaves(some) for some in (primal, moved))
    linear = linearize(document, keys)
    given = {k.tangent(1): t for k, t, a in zip([i.key for i in document.head.inputs], tangents, active, strict=True) if a}
    distances = {"value": _distance(_run(document, values), primal)}
    distances["jvp"] = _distance(_run(linear, values | given), moved)
    if reverse:
        cotangents = [_like(rng, np.asarray(y)) for y in primal]
        turned = transpose(linear)
        cts = {o.key.cotangent(1): np.asarray(c) for o, c in zip(document.head.outputs, cotangents, strict=True)}

        def back(*xs: Any) -> Any:
            _, vjp = jax.vjp(lambda *ys: jax.tree.leaves(function(*ys)), *xs)
            pulled = vjp([_conj(c) for c in cotangents])
            return [_conj(g) for g, a in zip(pulled, active, strict=True) if a]

        pulled, hvp = compiled(lambda xs: jax.jvp(back, tuple(xs), tuple(tangents)) if second else (back(*xs), None))(args)
        distances["vjp"] = _distance(_run(turned, values | cts), pulled)
        if second:
            again = linearize(turned, keys)
            given = {Key(k.name, (2,)): t for k, t in given.items()}
            distances["hvp"] = _distance(_run(again, values | cts | given), hvp)
    return distances


def _conj(x: Any) -> Any:
    return jax.numpy.conj(x) if jax.numpy.iscomplexobj(x) else x


def _like(rng: Any, x: Any) -> Any:
    if x.dtype.kind not in "fc":
        return np.zeros(x.shape, jax.dtypes.float0)
    drawn = rng.standard_normal(x.shape)
    return np.asarray(drawn + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else drawn, x.dtype)


def _run(document: Document, values: dict[Key, Any]) -> list[Any]:
    from tidu_cli.runtime.evaluate import evaluate

    graph = materialize(document).head
    results = evaluate(graph, {i.key: values[i.key] for i in graph.inputs if i.key in values})
    return [results[o.key] for o in graph.outputs]


def _distance(ours: Sequence[Any], theirs: Sequence[Any]) -> float:
    worst = 0.0
    for a, b in zip(ours, map(np.asarray, theirs), strict=True):
        if b.dtype == jax.dtypes.float0:
            continue
        scale = max(1.0, float(np.max(np.abs(b), initial=0)))
        worst = max(
            worst,
            float(np.max(np.abs(np.asarray(a, b.dtype) - b), initial=0)) / scale if b.dtype.kind in "fc" else float(np.any(a != b)),
        )
    return worst
