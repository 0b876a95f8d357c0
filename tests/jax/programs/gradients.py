"""Gradients of functions of JAX by tidu, from a jaxpr and from files, beside those of `jax.grad`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import export

import tidu_cli as tidu
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.graph import Document

CLOSE = 1e-9
"""By how much gradients may differ, relative to the largest number of each: the programs add up some thousand numbers in f64."""

ROUNDING = 1e-6
"""What is less than this part of the largest number of all may be what is left of numbers that cancel, and is held to that part."""


def assert_gradient_agrees(function: Callable[..., Any], *args: Any) -> None:
    """That the gradient of a scalar function by all floats in its arguments, which are pytrees, is JAX's."""
    with jax.enable_x64(True):
        arrays, rest, whole = _flat(function, args)
        document = tidu.from_jax(function, *args)
        _assert_same(_gradient(document, arrays, rest), jax.jit(jax.grad(whole))(arrays, rest))


def assert_gradients_of_files_agree(function: Callable[..., Any], *args: Any) -> None:
    """Likewise of the function in StableHLO: as text, and in a file of `jax.export`."""
    with jax.enable_x64(True):
        arrays, rest, whole = _flat(function, args)
        expected = jax.jit(jax.grad(whole))(arrays, rest)
        flat = jax.jit(lambda *xs: whole(xs[: len(arrays)], xs[len(arrays) :]), keep_unused=True)
        text = flat.lower(*arrays, *rest).as_text().encode()
        exported = bytes(export.export(flat)(*arrays, *rest).serialize())
    for data, name in ((text, "model.mlir"), (exported, "model.jax_export")):
        document, _ = parse_document(data, name)
        _assert_same(_gradient(document, arrays, rest), expected)


def assert_tangent_agrees(function: Callable[..., Any], *args: Any) -> None:
    """That the derivative of a function along random tangents of all floats in its arguments is JAX's."""
    with jax.enable_x64(True):
        arrays, rest, whole = _flat(function, args)
        rng = np.random.default_rng(5)
        tangents = [rng.standard_normal(np.shape(x)) for x in arrays]
        document = tidu.from_jax(function, *args)
        names = _names(document)
        linear = tidu.materialize(tidu.linearize(document, names))
        given = _given(document, arrays, rest) | {f"{k}@1": t for k, t in zip(names, tangents, strict=True)}
        results = tidu.evaluate(linear, given)
        _, moved = jax.jit(lambda *some: jax.jvp(lambda xs: whole(xs, rest), *some))((arrays,), (tangents,))
        _assert_same(list(results.values()), jax.tree.leaves(moved))


def _flat(function: Callable[..., Any], args: Sequence[Any]) -> tuple[list[Any], list[Any], Callable[..., Any]]:
    """The floats in the arguments, the other arrays, and the function of both."""
    leaves, tree = jax.tree.flatten(args)
    kinds = [np.asarray(x).dtype.kind if hasattr(x, "dtype") or isinstance(x, float | int) else "" for x in leaves]
    arrays = [np.asarray(x) for x, kind in zip(leaves, kinds, strict=True) if kind == "f"]
    rest = [np.asarray(x) for x, kind in zip(leaves, kinds, strict=True) if kind not in ("f", "")]

    def whole(arrays: Sequence[Any], rest: Sequence[Any]) -> Any:
        floats, others = iter(arrays), iter(rest)
        each = [next(floats) if k == "f" else next(others) if k else x for x, k in zip(leaves, kinds, strict=True)]
        return function(*jax.tree.unflatten(tree, each))

    return arrays, rest, whole


def _names(document: Document) -> list[str]:
    return [str(i.key) for i in document.head.inputs if i.type.inexact]


def _given(document: Document, arrays: Sequence[Any], rest: Sequence[Any]) -> dict[str, Any]:
    """The inputs by name: those of each kind are in the order of the leaves."""
    floats, others = iter(arrays), iter(rest)
    return {str(i.key): next(floats) if i.type.inexact else next(others) for i in document.head.inputs}


def _gradient(document: Document, arrays: Sequence[Any], rest: Sequence[Any]) -> list[Any]:
    gradient = tidu.grad(document, _names(document))
    cotangents = tidu.evaluate(gradient, _given(document, arrays, rest))
    return [cotangents[str(o.key)] for o in gradient.head.outputs]


def _assert_same(ours: Sequence[Any], theirs: Sequence[Any]) -> None:
    expected = [np.asarray(x) for x in theirs]
    largest = max(np.max(np.abs(x), initial=0) for x in expected)
    assert 0 < largest < np.inf
    for x, e in zip(ours, expected, strict=True):
        assert np.shape(x) == e.shape
        scale = max(np.max(np.abs(e), initial=0), ROUNDING * largest)
        np.testing.assert_allclose(x, e, rtol=0, atol=CLOSE * scale)
