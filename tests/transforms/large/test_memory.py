"""Transforms of large graphs take little more memory than the columns that they read and write."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from tests.peaks import traced
from tests.transforms.large.test_bulk import chain, in_bulk_only, large_from, scalars
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose


def n_bytes(graphs: Iterable[Graph]) -> int:
    """The memory of some graphs' columns."""
    return sum(4 * (g.n_nodes + len(g.args) + 2 * len(g.external)) for g in graphs)


@pytest.mark.check
@pytest.mark.parametrize("make", [chain, lambda n: scalars(n // 4)], ids=["chain", "dag"])
def test_memory_is_a_small_multiple_of_what_is_read_and_written(make: Callable[[int], Document]) -> None:
    """The multiples do not depend on the size; they are some percent above what is measured."""
    doc = make(60_000)
    wrt = [i.key for i in doc.head.inputs]
    steps: list[tuple[Callable[[Document], Document], float]] = [
        (lambda d: linearize(d, wrt), 2.25),
        (transpose, 2.0),
        (materialize, 1.65),
    ]
    with large_from(1, block=2**10, searches=12), in_bulk_only():
        transpose(linearize(doc, wrt))  # rules are run once, and what they need is imported
        for step, multiple in steps:
            made, taken = traced(lambda d=doc, s=step: s(d))  # type: ignore[misc]
            columns = n_bytes(doc.graphs) + n_bytes(g for g in made.graphs if g not in doc.graphs)
            assert taken < multiple * columns
            doc = made
