"""Following chains of values that are others."""

from __future__ import annotations

from tidu_cli.graph.columns.dataflow import Indices, Ints


def follow(found: Ints, aliases: Indices) -> None:
    """Where found[v] is -2-u, which says that v is what u is, enter what u is.

    `aliases` are all such v. Each round doubles how far pointers reach, so that rounds are few for chains of any length.
    """
    while len(aliases):
        found[aliases] = found[-2 - found[aliases]]
        aliases = aliases[found[aliases] < -1]
