"""Working without the garbage collector where very many objects arise that are in no cycle.

The collector looks for cycles among all that has survived, again and again as more arises: most of the time, and superlinear in
practice, where it is a million of objects. What reads documents, and what
records the rules of ops with large graphs, pauses it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Pause the collector, if it is on. Also a decorator: `@no_collection()`."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
