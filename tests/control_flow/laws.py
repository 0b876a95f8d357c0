"""What the laws share: how often they are tried, derivatives, evaluation, and comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.graphs.interpret import evaluate, free_inputs, tree
from tests.tiers import examples
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import moves
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose

Values = Mapping[Key, Any]
Transform = Callable[[Document], Document]

CAMPAIGN = 20
"""So many times as many examples in the long run."""

longer = pytest.mark.parametrize("times", [1, pytest.param(CAMPAIGN, marks=pytest.mark.campaign)])
"""For tests of laws: once as they are, and at length in the campaign."""


def hold(n: int, law: Callable[..., None], *strategies: st.SearchStrategy, check: int = 200) -> None:
    """Try a law on n examples; `make check` takes at most `check` of them."""

    @settings(max_examples=examples(n, check), suppress_health_check=list(HealthCheck))
    @given(st.tuples(*strategies))
    def holds(drawn: tuple[Any, ...]) -> None:
        law(*drawn)

    holds()


def wrt(doc: Document) -> list[Key]:
    """The inputs that carry tangents, but for tangents and cotangents."""
    return [k for k, t in free_inputs(doc).items() if moves(t) and not k.path]


def forward(doc: Document) -> Document:
    """The derivative along all inputs that carry tangents."""
    return linearize(doc, wrt(doc))


def gradient(doc: Document) -> Document:
    """The transpose of it."""
    return transpose(forward(doc))


def run(doc: Document, at: Values) -> dict[Key, Any]:
    """The outputs by the plain interpreter."""
    with np.errstate(all="ignore"):
        return evaluate(doc, at)


def assert_alike(values: Values, due: Values, tolerance: float) -> None:
    """Whether values are of the same types, and equal relative to the largest number of each."""
    assert list(values) == list(due)
    for key, x in due.items():
        tree(lambda a, b, key=key: _alike(np.asarray(a), np.asarray(b), tolerance, key), values[key], x)


def _alike(a: Any, b: Any, tolerance: float, key: Key) -> None:
    assert (a.shape, a.dtype) == (b.shape, b.dtype), key
    if b.dtype.kind not in "fc":
        assert np.array_equal(a, b), key
        return
    scale = 1 + np.max(np.abs(b), initial=0)
    assert np.all(np.abs(a - b) <= tolerance * scale), key


def tolerance_of(doc: Document) -> float:
    """What the arithmetic of some dozen operations explains."""
    return 2e-4 if any(getattr(t, "dtype", "") in ("f32", "c64") for t in free_inputs(doc).values()) else 1e-10


ORDERS: dict[str, Transform] = {
    "values": lambda doc: doc,
    "jvp": forward,
    "vjp": gradient,
    "forward over forward": lambda doc: forward(forward(doc)),
    "forward over reverse": lambda doc: forward(gradient(doc)),
    "reverse over forward": lambda doc: transpose(forward(forward(doc))),
    "reverse over reverse": lambda doc: gradient(gradient(doc)),
}
