"""The names of the Python array API standard, as `__array_namespace__` gives them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidu_cli.build.errors import UnknownFunctionError
from tidu_cli.build.numpy.functions import FUNCTIONS, holds_arrays, numpys, refusal, traced

PLAIN = frozenset(
    {"arange", "empty", "eye", "finfo", "from_dlpack", "full", "iinfo", "isdtype", "linspace", "ones", "zeros",
     "fft.fftfreq", "fft.rfftfreq"}
)  # fmt: skip
"""Functions that take no arrays: NumPy's, and what they give becomes a constant."""


class Namespace:
    """The standard's names. Functions are traced where an array that is traced is among the arguments, else NumPy's."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name in ("linalg", "fft") and not self._prefix:
            return Namespace(f"{name}.")
        if name == "newaxis":
            return None
        full = self._prefix + name
        implementation, plain = traced(full), numpys(full) if not name.startswith("_") else None
        if implementation is None and plain is not None and (full in PLAIN or not callable(plain) or isinstance(plain, type)):
            return plain
        if plain is None or implementation is None:
            raise UnknownFunctionError(refusal(full, "the array API's "))

        def function(*args: Any, **options: Any) -> Any:
            return implementation(*args, **options) if holds_arrays(args, options) else plain(*args, **options)

        function.__name__ = name
        return function

    def __array_namespace_info__(self) -> Any:
        return np.__array_namespace_info__()

    def __dir__(self) -> list[str]:
        names = [name.removeprefix(self._prefix) for name in (*FUNCTIONS, *PLAIN) if name.startswith(self._prefix)]
        return sorted(name for name in names if "." not in name)


NAMESPACE = Namespace()
