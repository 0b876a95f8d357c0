"""A function of JAX at a point, four ways: values, tangents, cotangents, and the derivative of these, of JAX and of tidu."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import tidu_cli
from tests.jax.lowering.compiled import compiled
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.graph import Document

Arrays = list[Any]

TOLERANCE = 1e-9
"""Of the greatest magnitude in an array, or of 1 if that is less."""


class Function:
    """A function and the arrays that it is called with, of which floats and complex numbers are differentiated."""

    def __init__(
        self, function: Callable[..., Any], *arguments: Any, order: int = 2, reverse: bool = True, tolerance: float = TOLERANCE
    ) -> None:
        self.function = function
        self.arguments = [np.asarray(a) for a in arguments]
        self.order = order
        self.reverse = reverse
        self.tolerance = tolerance
        self.moving = [k for k, a in enumerate(self.arguments) if a.dtype.kind in "fc"]

    @cached_property
    def results(self) -> Arrays:
        """The types of the results."""
        return jax.tree_util.tree_leaves(jax.eval_shape(self.function, *self.arguments))

    @cached_property
    def smooth(self) -> list[int]:
        """The results that are differentiated."""
        return [k for k, y in enumerate(self.results) if y.dtype.kind in "fc"] if self.moving and self.order else []

    @cached_property
    def tangents(self) -> Arrays:
        """Directions of the arguments that are differentiated."""
        return [_direction(k, self.arguments[k]) for k in self.moving]

    @cached_property
    def cotangents(self) -> Arrays:
        """Weights of the results that are differentiated."""
        return [_direction(7 + k, np.zeros(self.results[k].shape, self.results[k].dtype)) for k in self.smooth]

    def of_jax(self) -> dict[str, Arrays]:
        """What JAX computes, in one compiled function, in our convention: our cotangent is conj(vjp(conj(ct)))."""

        def everything(arguments: Arrays, vs: Arrays, us: Arrays) -> dict[str, Any]:
            def outputs(*xs: Any) -> list[Any]:
                given = dict(zip(self.moving, xs, strict=True))
                leaves = jax.tree_util.tree_leaves(self.function(*[given.get(k, a) for k, a in enumerate(arguments)]))
                return [leaves[k] for k in self.smooth]

            def pull(*xs: Any) -> list[Any]:
                return [g.conj() for g in jax.vjp(outputs, *xs)[1]([u.conj() for u in us])]

            xs = [arguments[k] for k in self.moving]
            by_kind = {"value": jax.tree_util.tree_leaves(self.function(*arguments))}
            if self.smooth:
                by_kind["jvp"] = jax.jvp(outputs, tuple(xs), tuple(vs))[1]
            if self.smooth and self.reverse:
                by_kind["vjp"] = pull(*xs)
                if self.order > 1:
                    by_kind["hvp"] = jax.jvp(pull, tuple(xs), tuple(vs))[1]
            return by_kind

        results = compiled(everything)([jnp.asarray(a) for a in self.arguments], self.tangents, self.cotangents)
        return {kind: [np.asarray(y) for y in ys] for kind, ys in results.items()}

    def from_jaxpr(self) -> Document:
        """The document of the function's jaxpr."""
        return tidu_cli.from_jax(self.function, *self.arguments, names=[str(k) for k in range(len(self.arguments))])

    def from_stablehlo(self) -> Document:
        """The document of the module that JAX lowers the function to."""
        lowered = jax.jit(self.function, keep_unused=True).lower(*self.arguments)
        return parse_document(lowered.as_text().encode(), "model.mlir")[0]

    def of_tidu(self, document: Document) -> dict[str, Arrays]:
        """What tidu computes of a document of the function, whose inputs are called by their numbers."""
        given = {str(k): a for k, a in enumerate(self.arguments)}
        by_kind = {"value": list(tidu_cli.evaluate(document, given).values())}
        if not self.smooth:
            return by_kind
        names = [str(o.key) for o in document.head.outputs]
        wrt, outputs = [str(k) for k in self.moving], [names[k] for k in self.smooth]
        forward = tidu_cli.linearize(document, wrt, output=outputs)
        given |= {f"{k}@1": v for k, v in zip(wrt, self.tangents, strict=True)}
        by_kind["jvp"] = _of(forward, given, [f"{y}@1" for y in outputs])
        if self.reverse:
            reverse = tidu_cli.transpose(forward)
            given |= {f"{y}@-1": u for y, u in zip(outputs, self.cotangents, strict=True)}
            by_kind["vjp"] = _of(reverse, given, [f"{k}@-1" for k in wrt])
            if self.order > 1:
                second = tidu_cli.linearize(reverse, wrt)
                given |= {f"{k}@2": v for k, v in zip(wrt, self.tangents, strict=True)}
                by_kind["hvp"] = _of(second, given, [f"{k}@-1@2" for k in wrt])
        return by_kind


def differences(due: dict[str, Arrays], ours: dict[str, Arrays], tolerance: float = TOLERANCE) -> list[str]:
    """What differs by more than the tolerance, in words."""
    told = []
    for kind, arrays in due.items():
        assert len(arrays) == len(ours[kind])
        for k, (y, z) in enumerate(zip(arrays, ours[kind], strict=True)):
            z = np.asarray(z)
            if y.shape != z.shape or y.dtype != z.dtype:
                told.append(f"{kind} {k}: {z.dtype}{z.shape} for {y.dtype}{y.shape}")
            elif y.dtype.kind in "fc":
                limit = tolerance * max(1.0, np.nan_to_num(abs(y)).max(initial=0.0))
                if not np.allclose(z, y, rtol=0, atol=limit, equal_nan=True):
                    told.append(f"{kind} {k}: off by {abs(z - y).max():.1e}")
            elif (y != z).any():
                told.append(f"{kind} {k}: other integers")
    return told


def _of(document: Document, given: dict[str, Any], keys: Sequence[str]) -> Arrays:
    results = tidu_cli.evaluate(document, given)
    return [results[key] for key in keys]


def _direction(seed: int, like: Any) -> Any:
    rng = np.random.default_rng(seed)
    drawn = rng.uniform(0.5, 1.5, like.shape) * rng.choice([-1, 1], like.shape)
    if like.dtype.kind == "c":
        drawn = drawn + 1j * rng.uniform(0.5, 1.5, like.shape)
    return np.asarray(drawn, like.dtype)
