"""Ordinary functions build as they are; values are NumPy's, gradients those of central differences and of JAX.

What is a float, or an array, list or record of floats, is an input; integers, texts, flags and masks are constants.
"""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from tests.ordinary.fields import refused
from tests.tiers import few
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.graph.graph import Document
from tidu_cli.graph.types import TensorType
from tidu_cli.runtime.evaluate import evaluate
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

FIELDS = ("dynamics", "kinematics", "filters", "finance", "statistics", "layers", "physics", "numerics", "earth", "life", "images")
EXAMPLES = [(field, *example) for field in FIELDS for example in import_module(f"tests.ordinary.fields.{field}").EXAMPLES]

Example = tuple[Callable[..., Any], Mapping[str, Any]]


def mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """A value with something else in place of its leaves."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(value, **{f.name: mapped(change, getattr(value, f.name)) for f in dataclasses.fields(value)})
    if isinstance(value, dict):
        return {k: mapped(change, v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        parts = [mapped(change, v) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return change(value)


def leaves(value: Any) -> Iterator[Any]:
    """The leaves of a value, in the order of its fields."""
    parts: list[Any] = []
    mapped(parts.append, value)
    return iter(parts)


def moves(value: Any) -> bool:
    """Whether an argument is an input: all of it is of floats."""
    return all(isinstance(x, float) or (isinstance(x, np.ndarray) and x.dtype.kind == "f") for x in leaves(value))


def gradient_by_differences(function: Callable[[list[Any]], float], at: list[Any]) -> list[Any]:
    """Central differences of the eighth order: with these steps rounding and what is left out are below 1e-8 here."""
    gradient = []
    for k, x in enumerate(at):
        x = np.asarray(x)
        slopes = np.zeros(x.shape)
        for place in np.ndindex(x.shape):
            h = 2e-4 * (abs(float(x[place])) or np.abs(x).max() or 1)
            total = 0.0
            for steps, weight in ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280)):
                for sign in (1, -1):
                    moved = x.copy()
                    moved[place] += sign * steps * h
                    total += sign * weight * function([*at[:k], moved, *at[k + 1 :]])
            slopes[place] = total / h
        gradient.append(slopes)
    return gradient


def split(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and constants."""
    return {k: v for k, v in given.items() if moves(v)}, {k: v for k, v in given.items() if not moves(v)}


def like(model: Mapping[str, Any], values: list[Any]) -> dict[str, Any]:
    """Arguments with these leaves: floats where the model has them, and arrays that a function may change."""
    rest = iter(values)

    def leaf(old: Any) -> Any:
        new = next(rest)
        return float(new) if isinstance(old, float) else np.array(new)

    return {k: mapped(leaf, v) for k, v in model.items()}


def results(value: Any) -> list[Any]:
    """The arrays that a function gives, in the order of the graph's outputs."""
    return [np.asarray(x, float) for x in leaves(value)]


def build(function: Callable[..., Any], given: Mapping[str, Any]) -> Document:
    """The graph of a function, whose inputs are the leaves of the arguments that move."""
    moving, fixed = split(given)
    return trace(partial(function, **fixed), **{k: mapped(lambda x: TensorType("f64", np.shape(x)), v) for k, v in moving.items()})


def vjp(document: Document, values: list[Any], weights: list[Any]) -> list[Any]:
    """The gradient of the sum of the outputs with these weights."""
    inputs = [i.key for i in document.head.inputs]
    backward = materialize(transpose(linearize(document, inputs)))
    known = dict(zip(inputs, map(np.asarray, values), strict=True))
    cotangents = iter(weights)
    given = {i.key: known[i.key] if i.key in known else next(cotangents) for i in backward.head.inputs}
    return list(evaluate(backward.head, given).values())[-len(inputs) :]


def agrees(function: Callable[..., Any], document: Document, given: Mapping[str, Any]) -> None:
    """Values are NumPy's, and the gradient of outputs with some weights is that of central differences."""
    moving, fixed = split(given)
    values = list(leaves(moving))
    known = {i.key: np.asarray(x) for i, x in zip(document.head.inputs, values, strict=True)}

    def plain(values: list[Any]) -> list[Any]:
        return results(function(**like(moving, values), **copy.deepcopy(fixed)))

    expected = plain(values)
    for x, y in zip(evaluate(document.head, known).values(), expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12 * np.abs(y).max(initial=1))

    weights = weights_of(expected)

    def weighted(leaves: list[Any]) -> float:
        return float(sum(np.sum(w * y) for w, y in zip(weights, plain(leaves), strict=True)))

    for x, y in zip(vjp(document, values, weights), gradient_by_differences(weighted, values), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-6 * np.abs(y).max(initial=1e-3))


def weights_of(outputs: list[Any]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.uniform(0.5, 1, np.shape(y)) for y in outputs]


SOME = few(EXAMPLES, 160)


@pytest.mark.parametrize(("field", "function", "given"), SOME, ids=[f"{e[0]}.{e[1].__name__}" for e in SOME])
def test_it_builds_unchanged(field: str, function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    agrees(function, build(function, copy.deepcopy(given)), given)


@pytest.mark.parametrize(
    ("function", "rewritten", "given", "told"), refused.EXAMPLES, ids=[e[0].__name__ for e in refused.EXAMPLES]
)
def test_what_depends_on_values_is_refused_and_its_rewriting_builds(
    function: Callable[..., Any], rewritten: Callable[..., Any], given: Mapping[str, Any], told: str
) -> None:
    with pytest.raises(BuildError, match=re.escape(told)) as refusal:
        build(function, copy.deepcopy(given))
    assert re.match(r".*refused\.py:\d+: ", str(refusal.value))
    agrees(function, build(rewritten, copy.deepcopy(given)), given)


def test_there_are_two_hundred_and_most_build() -> None:
    names = {(field, function) for field, function, _ in EXAMPLES}
    assert len(names) >= 200 and len(refused.EXAMPLES) <= len(names) / 20
