"""The names of NumPy and `math` while a function is traced: what makes arrays gives users' code buffers.

The functions that make arrays are mostly written in C, so it is their names that are replaced: in NumPy's module, and in modules of
users that imported them. Code of packages, and other threads, get what NumPy gives: each call looks at who calls.
"""

from __future__ import annotations

import functools
import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy import creating
from tidu_cli.adapters.numpy.buffers.buffer import Buffer
from tidu_cli.adapters.numpy.buffers.memory import LOADING, buffers_wanted, holds_traced
from tidu_cli.adapters.numpy.errors import written_by_users
from tidu_cli.adapters.numpy.numpy.functions import FUNCTIONS

_users = lru_cache(maxsize=4096)(written_by_users)


def _calls_us(frame: Any) -> bool:
    """Whether it is users' code, also by way of compiled code, which has no frames, and something is traced."""
    return buffers_wanted() and _users(frame.f_code.co_filename)


def _replacement(numpys: Any, ours: Callable[[tuple[Any, ...], dict[str, Any]], Any]) -> Any:
    """A function of NumPy's that is another where users' code calls it while something is traced."""

    @functools.wraps(numpys)
    def function(*args: Any, **options: Any) -> Any:
        return ours(args, options) if _calls_us(sys._getframe(1)) else numpys(*args, **options)

    function.numpys = numpys  # type: ignore[attr-defined]
    return function


def _mathematical(maths: Any, ours: Callable[..., Any]) -> Any:
    """A function of `math`, which is another one of traced values."""

    @functools.wraps(maths)
    def function(*args: Any, **options: Any) -> Any:
        return ours(*args, **options) if holds_traced(args) else maths(*args, **options)

    return function


class _Joining:
    """np.r_ or np.c_."""

    def __init__(self, numpys: Any) -> None:
        self._numpys = numpys

    def __getitem__(self, key: Any) -> Any:
        return creating.joined(self._numpys, key) if _calls_us(sys._getframe(1)) else self._numpys[key]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._numpys, name)

    def __len__(self) -> int:
        return len(self._numpys)


_PLAIN_CALL = np.vectorize.__call__


def _vectorized(self: Any, *args: Any, **options: Any) -> Any:
    return creating.vectorized(self, args, options) if holds_traced((args, options)) else _PLAIN_CALL(self, *args, **options)


def _replacements() -> list[tuple[Any, str, Any]]:
    """What is replaced: where, by what name, and by what."""
    replacements: list[tuple[Any, str, Any]] = [
        (np, k, _replacement(f := getattr(np, k), functools.partial(creating.made, f))) for k in creating.MAKING
    ]
    replacements += [
        (np, k, _replacement(f := getattr(np, k), functools.partial(creating.array, f, k == "array"))) for k in creating.NESTED
    ]
    replacements.append((np, "full", _replacement(np.full, functools.partial(creating.full, np.full))))
    modules = {"": np, "linalg": np.linalg}
    for name in FUNCTIONS:
        module, _, short = name.rpartition(".")
        f = getattr(modules.get(module), short, None)
        if f is not None and not isinstance(f, np.ufunc) and name not in creating.NESTED:
            replacements.append((modules[module], short, _replacement(f, functools.partial(creating.computed, f, name))))
    replacements.append((np, "fromiter", _replacement(np.fromiter, functools.partial(creating.fromiter, np.fromiter))))
    calling = {"ndenumerate": creating.enumerated, "apply_along_axis": creating.along_axis, "piecewise": creating.piecewise}
    replacements += [(np, k, _replacement(f := getattr(np, k), functools.partial(ours, f))) for k, ours in calling.items()]
    replacements += [(np, k, _Joining(getattr(np, k))) for k in ("r_", "c_")]
    replacements.append((np.vectorize, "__call__", _vectorized))
    return replacements + [(math, k, _mathematical(getattr(math, k), f)) for k, f in creating.FUNCTIONS.items() if hasattr(math, k)]


class _Names:
    """The names, and how many traces want them replaced."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._traces = 0
        self._ours = _replacements()
        self._plain = [(owner, name, getattr(owner, name)) for owner, name, _ in self._ours]
        pairs = [(theirs, ours) for (_, _, theirs), (_, _, ours) in zip(self._plain, self._ours, strict=True)]
        self._to_ours = {id(theirs): ours for theirs, ours in pairs}
        self._to_plain = {id(ours): theirs for theirs, ours in pairs}
        self._users: dict[str, bool] = {}

    @contextmanager
    def during(self) -> Iterator[None]:
        """Have the names replaced."""
        with self._lock:
            self._traces += 1
            if self._traces == 1:
                _put(self._ours)
                self._exchange(self._to_ours, traced=True)
        try:
            yield
        finally:
            with self._lock:
                self._traces -= 1
                if not self._traces:
                    _put(self._plain)
                    self._exchange(self._to_plain, traced=False)

    def _exchange(self, table: dict[int, Any], *, traced: bool) -> None:
        """Exchange what users' modules have imported by its name, and show arrays in them as buffers, or no longer."""
        before, after = (np.ndarray, _shown) if traced else (Buffer, _hidden)
        for name, module in list(sys.modules.items()):
            if not self._users.get(name, True) or not self._of_users(name, module):  # of thousands of packages' a look tells
                continue
            names = vars(module)
            for key, value in list(names.items()):
                if id(value) in table:
                    names[key] = table[id(value)]
                elif type(value) is before:
                    names[key] = after(value)

    def _of_users(self, name: str, module: Any) -> bool:
        if name not in self._users:
            file = getattr(module, "__file__", None) if isinstance(module, ModuleType) else None
            self._users[name] = name == "__main__" or (isinstance(file, str) and file.endswith(".py") and written_by_users(file))
        return self._users[name]


def _shown(x: Any) -> Any:
    """An array of a module as a buffer, which cannot be written into with traced values, but its copies can."""
    shown = x.view(Buffer)
    shown.hides = x
    return shown


def _hidden(x: Any) -> Any:
    return getattr(x, "hides", x)


def _put(names: list[tuple[Any, str, Any]]) -> None:
    for owner, name, value in names:
        setattr(owner, name, value)


_NAMES = _Names()
"""One for the process, as NumPy's names are."""


@contextmanager
def loading() -> Iterator[None]:
    """While a file is run: arrays that it makes are buffers, as the function that is traced meets them."""
    token = LOADING.set(True)
    try:
        with _NAMES.during():
            yield
    finally:
        LOADING.reset(token)


numpy_traced = _NAMES.during
"""While this context lasts, arrays that users' code makes may hold traced values."""
