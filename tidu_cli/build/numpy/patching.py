"""NumPy's names while a function is traced: what makes arrays gives users' code buffers.

The functions that make arrays are mostly written in C, so what is replaced is the name: in NumPy's module, and in modules of users that
imported it by itself. Code of packages, and other threads, have NumPy's own: who calls is looked at in each call.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from tidu_cli.build.arrays.running import RUNNING
from tidu_cli.build.errors import written_by_users
from tidu_cli.build.numpy import creating

_users = lru_cache(maxsize=4096)(written_by_users)


def _replacement(numpys: Any, ours: Callable[[tuple[Any, ...], dict[str, Any]], Any]) -> Any:
    """A function of NumPy's that does something else where users' code calls it while something is traced."""

    @functools.wraps(numpys)
    def function(*args: Any, **options: Any) -> Any:
        if RUNNING.get() is None or not _users(sys._getframe(1).f_code.co_filename):
            return numpys(*args, **options)
        return ours(args, options)

    function.numpys = numpys  # type: ignore[attr-defined]
    return function


def _replacements() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in creating.MAKING:
        numpys = getattr(np, name)
        found[name] = _replacement(numpys, functools.partial(creating.made, numpys))
    for name in ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray"):
        numpys = getattr(np, name)
        found[name] = _replacement(numpys, functools.partial(creating.array, numpys, name))
    found["fromiter"] = _replacement(np.fromiter, functools.partial(creating.fromiter, np.fromiter))
    return found


class _Names:
    """NumPy's names and those of users' modules, and how many traces want them replaced."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._traces = 0
        self._ours = _replacements()
        self._numpys = {name: getattr(np, name) for name in self._ours}
        self._by_numpys = {id(self._numpys[name]): ours for name, ours in self._ours.items()}
        self._by_ours = {id(ours): self._numpys[name] for name, ours in self._ours.items()}
        self._modules: dict[str, tuple[ModuleType, int, list[str]]] = {}
        self._seen: dict[str, int] = {}

    @contextmanager
    def during(self) -> Iterator[None]:
        """Have the names replaced."""
        with self._lock:
            self._traces += 1
            if self._traces == 1:
                vars(np).update(self._ours)
            self._exchange(self._by_numpys)
        try:
            yield
        finally:
            with self._lock:
                self._traces -= 1
                if not self._traces:
                    vars(np).update(self._numpys)
                    self._exchange(self._by_ours)

    def _exchange(self, table: dict[int, Any]) -> None:
        """Exchange what users' modules have by names of their own."""
        for name, module in list(sys.modules.items()):
            if self._of_users(name, module):
                names = vars(module)
                for key in [k for k, v in list(names.items()) if id(v) in table]:
                    names[key] = table[id(names[key])]

    def _of_users(self, name: str, module: Any) -> bool:
        known = self._seen.get(name)
        if known is None:
            file = getattr(module, "__file__", None)
            users = name == "__main__" or (isinstance(file, str) and file.endswith(".py") and written_by_users(file))
            known = self._seen[name] = int(users and isinstance(module, ModuleType))
        return bool(known)


_NAMES = _Names()
"""One for the process, as NumPy's names are."""

numpy_traced = _NAMES.during
"""While this context lasts, arrays that users' code makes may hold traced values."""
