"""When a graph is large: then transforms work on whole columns with NumPy, where they know how, and not node by node.

Both ways give the same graph. The way by columns costs the import of NumPy, and some calls for each distinct case; the other is the
reference, and what small graphs take. Where very many objects arise that are in no cycle, the garbage collector is paused: it looks
for cycles among all that has survived, again and again as more arises, which is most of the time where it is a million.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

NODES = 2**15
"""From so many nodes on a graph is large: to walk fewer takes no longer than to import NumPy."""

NODES_WITH_NUMPY = 2**8
"""Likewise where NumPy has been imported anyway."""


def is_large(n_nodes: int) -> bool:
    """Whether so many nodes, or arguments, are worth the work of going by columns."""
    return n_nodes >= (NODES_WITH_NUMPY if "numpy" in sys.modules else NODES)


def by_columns(module: str, size: Callable[..., int]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Of a function, the one that goes by columns where there is much: the function of the same name in that module.

    `size` says how much there is, from the same arguments. Where that function gives None it is not able to, and has done nothing.
    """

    def decorated(plain: Callable[P, T]) -> Callable[P, T]:
        @wraps(plain)
        def either(*args: P.args, **kwargs: P.kwargs) -> T:
            if is_large(size(*args, **kwargs)):
                result: T | None = getattr(import_module(module), plain.__name__)(*args, **kwargs)
                if result is not None:
                    return result
            return plain(*args, **kwargs)

        return either

    return decorated


@contextmanager
def no_collection() -> Iterator[None]:
    """Pause the garbage collector, if it is on. Also a decorator: `@no_collection()`."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
