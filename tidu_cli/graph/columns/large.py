"""When a graph is large: then transforms work on whole columns with NumPy, where they know how, and not node by node.

Both ways give the same graph. The way by columns costs the import of NumPy, and some calls for each distinct case; the other is the
reference, and what small graphs take.
"""

from __future__ import annotations

import sys

NODES = 2**15
"""From so many nodes on a graph is large: to walk fewer takes no longer than to import NumPy."""

NODES_WITH_NUMPY = 2**11
"""Likewise where NumPy has been imported anyway."""


def is_large(n_nodes: int) -> bool:
    """Whether so many nodes, or arguments, are worth the work of going by columns."""
    return n_nodes >= (NODES_WITH_NUMPY if "numpy" in sys.modules else NODES)
