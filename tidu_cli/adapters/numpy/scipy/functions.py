"""The functions of SciPy that have a counterpart in graphs, by module and name.

Ufuncs of `scipy.special` are not among them: they are in the table of `numpy.elementwise.elementwise`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tidu_cli.adapters.numpy.numpy.functions import functions_of
from tidu_cli.adapters.numpy.scipy import fft, integrate, linalg, matrices, signal, special, stats

MODULES: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "scipy.fft": functions_of(fft),
    "scipy.integrate": functions_of(integrate),
    "scipy.linalg": functions_of(linalg) | functions_of(matrices),
    "scipy.signal": functions_of(signal),
    "scipy.special": functions_of(special),
    "scipy.stats": functions_of(stats),
}
"""What can be traced: public functions of the modules here, by SciPy's names; `rv_continuous.pdf` is a method of a class."""
