"""Nothing is forgotten: every function of NumPy and of the array API is traced or refused by name, and docs/build.md lists each.

`TIDU_RENEW=1` writes the lists of docs/build.md anew.
"""

from __future__ import annotations

import importlib
import os
import re
import textwrap

import numpy as np
import pytest
import scipy.interpolate
from numpy.testing.overrides import get_overridable_numpy_array_functions, get_overridable_numpy_ufuncs

from tests.build.comparing import assert_same, run
from tests.cli.running import ROOT
from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.refused import FUNCTIONS as REFUSED
from tidu_cli.adapters.numpy.arrays.refused import MODULES as REFUSED_MODULES
from tidu_cli.adapters.numpy.arrays.refused import REFUSALS
from tidu_cli.adapters.numpy.formulas.language import CONSTANTS, OTHER_NAMES, function_names
from tidu_cli.adapters.numpy.formulas.language import CREATION as IN_FORMULAS
from tidu_cli.adapters.numpy.numpy.elementwise.elementwise import UFUNCS
from tidu_cli.adapters.numpy.numpy.elementwise.ufuncs import CONTRACTIONS, SCIPYS
from tidu_cli.adapters.numpy.numpy.functions import ALIASES, CREATION, FUNCTIONS, GROUPS, NAMESPACE, NOT_NUMPYS, PLAIN, numpys
from tidu_cli.adapters.numpy.scipy.calling import MODULES
from tidu_cli.adapters.numpy.scipy.distributions import CONTINUOUS, DISCRETE
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.errors import TiduError

ARRAY_API = re.findall(
    r"\S+",
    """
    e inf nan newaxis pi bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128 arange
    asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril triu zeros zeros_like astype
    broadcast_arrays broadcast_to can_cast finfo iinfo isdtype result_type abs acos acosh add asin asinh atan atan2 atanh
    bitwise_and bitwise_left_shift bitwise_invert bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh
    divide equal exp expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log log1p log2
    log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply negative not_equal positive pow real
    remainder round sign signbit sin sinh square sqrt subtract tan tanh trunc take matmul matrix_transpose tensordot vecdot concat
    expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile unstack argmax argmin nonzero searchsorted where
    unique_all unique_counts unique_inverse unique_values argsort sort cumulative_sum max mean min prod std sum var all any
    linalg.cholesky linalg.cross linalg.det linalg.diagonal linalg.eigh linalg.eigvalsh linalg.inv linalg.matmul
    linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.matrix_transpose linalg.outer linalg.pinv linalg.qr
    linalg.slogdet linalg.solve linalg.svd linalg.svdvals linalg.tensordot linalg.trace linalg.vecdot linalg.vector_norm fft.fft
    fft.ifft fft.fftn fft.ifftn fft.rfft fft.irfft fft.rfftn fft.irfftn fft.hfft fft.ihfft fft.fftfreq fft.rfftfreq fft.fftshift
    fft.ifftshift
    """,
)
"""The names of the Python array API standard, 2023.12, with its extensions linalg and fft."""

ATTRIBUTES = re.findall(
    r"\S+",
    """
    T device dtype mT ndim shape size to_device __abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __eq__ __float__
    __floordiv__ __ge__ __getitem__ __gt__ __index__ __int__ __invert__ __le__ __lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__
    __neg__ __or__ __pos__ __pow__ __rshift__ __setitem__ __sub__ __truediv__ __xor__ __radd__ __rand__ __rfloordiv__ __rlshift__
    __rmatmul__ __rmod__ __rmul__ __ror__ __rpow__ __rrshift__ __rsub__ __rtruediv__ __rxor__
    """,
)
"""Those of its arrays, less DLPack's, which shares memory that a graph has not got."""


def available(name: str) -> bool:
    member = NAMESPACE
    try:
        for part in name.split("."):
            member = getattr(member, part)
    except AttributeError:
        return False
    return True


@pytest.mark.parametrize("name", ARRAY_API)
def test_the_array_api_is_there_or_refused(name: str) -> None:
    assert available(name) != (name in REFUSED)


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_arrays_of_the_array_api(name: str) -> None:
    assert name in dir(Array)


def test_numpys_functions_are_traced_or_refused() -> None:
    for module in ("char", "fft", "ma", "polynomial", "rec", "strings"):
        importlib.import_module(f"numpy.{module}")  # which tells NumPy of their functions
    traced = {numpys(name) for name in FUNCTIONS} | set(CREATION)
    others = {f"{f.__module__}.{f.__name__}".removeprefix("numpy.") for f in get_overridable_numpy_array_functions() - traced}
    assert {name for name in others if not name.startswith(REFUSED_MODULES)} <= {*REFUSED, *CREATION.values()}


def test_numpys_ufuncs_are_traced_or_refused() -> None:
    names = {u.__name__ for u in get_overridable_numpy_ufuncs() if getattr(np, u.__name__, None) is u}  # those of text are hidden
    assert names - set(UFUNCS) - set(CONTRACTIONS) <= set(REFUSED)


def test_nothing_is_both_traced_and_refused() -> None:
    assert not {*FUNCTIONS, *ALIASES, *PLAIN} & set(REFUSED)


def test_a_refusal_says_what_to_write_instead() -> None:
    for function, advice in ((np.roots, "the companion matrix"), (np.unique, "sums of masks"), (np.frexp, "write arithmetic")):
        with pytest.raises(TiduError, match=f"{function.__name__} cannot be traced.*{advice}"):
            trace(lambda x, f=function: f(x), x="f64[2,2]")


def test_a_refusal_names_what_was_called() -> None:
    """And not what that calls, or a method of its class."""
    x, y = np.arange(4.0), np.arange(4.0)
    for function, message in (
        (lambda x: max(x[0], 1.0), "max() needs the value of an array, which a graph does not have yet (bool[]); write np.maximum"),
        (lambda x: min(x), "min() needs the value"),
        (lambda x: sorted(x), "sorted() needs the value of an array, which a graph does not have yet (bool[]); write np.sort"),
        (lambda x: list(x).sort(), "list(x).sort() needs the value"),
        (lambda x: all(x > 0), "all() needs the value of an array, which a graph does not have yet (bool[]); write np.all"),
        (lambda x: 1 if x[0] > 0 else 2, "a branch on a value"),
        (lambda x: np.poly1d(x), "np.poly1d cannot be traced; write np.polyval"),
        (lambda x: scipy.interpolate.KroghInterpolator(x, y), "scipy.interpolate.KroghInterpolator cannot be traced"),
        (lambda x: scipy.interpolate.KroghInterpolator(y, y)(x), "scipy.interpolate.KroghInterpolator cannot be traced"),
    ):
        with pytest.raises(TiduError) as refusal:
            trace(function, x=x)
        assert message in str(refusal.value)


def test_the_advice_for_lookups_works() -> None:
    table, i = np.array([5.0, 6.0, 7.0]), np.array([2, 0])
    with pytest.raises(TiduError, match=r"write np.array\(table, like=i\)\[i\]"):
        trace(lambda i: table[i], i)
    (value,) = run(trace(lambda i: np.array(table, like=i)[i] + np.zeros(2, like=i), i), {"i": i}).values()
    assert_same(value, table[i])


def test_a_model_in_the_array_api() -> None:
    def model(x):
        xp = x.__array_namespace__()
        assert not hasattr(xp, "frobnicate")
        assert "concat" in dir(xp) and "vector_norm" in dir(xp.linalg)
        wave = xp.fft.fftshift(xp.fft.fftfreq(5))
        return xp.linalg.vector_norm(xp.concat([xp.asin(x), xp.zeros(2), wave * xp.sum(xp.pow(x, 2))])) + xp.pi

    x = np.linspace(-0.5, 0.5, 3)
    (value,) = run(trace(model, x), {"x": x}).values()
    wave = np.fft.fftshift(np.fft.fftfreq(5))
    assert_same(value, np.linalg.norm([*np.arcsin(x), 0, 0, *(wave * np.sum(x**2))]) + np.pi)


# The lists of docs/build.md.


def listed(names) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def what_can_be_traced() -> str:
    """The tables of what can be traced, as docs/build.md has them."""
    rows = ["| | |", "|---|---|"]
    for title, functions in GROUPS.items():
        names = set(functions) - NOT_NUMPYS
        rows.append(f"| {title} | {listed(names)} |")
    rows.append(f"| new arrays, with `like=` | {listed(CREATION.values())} |")
    for module, functions in MODULES.items():
        names = {*functions, *(SCIPYS if module == "scipy.special" else ())}
        if names:
            rows.append(f"| `{module}` | {listed(name for name in names if name[0] != '_' and not name.endswith('__'))} |")
    rows.append(f"| distributions of `scipy.stats` | {listed([*CONTINUOUS, *DISCRETE, 'dirichlet', 'multivariate_normal'])} |")
    methods = {name for name in vars(Array) if not name.startswith("_")} - set(Array.__slots__) - INTERNAL
    rows.append(f"| attributes and methods of arrays | {listed(methods)} |")
    rows.append(f"| the array API's other names | {listed(name for name in ARRAY_API if name in {*ALIASES, *PLAIN})} |")
    own = set(function_names()) - (set(FUNCTIONS) - NOT_NUMPYS) - set(SCIPYS)
    rows.append(f"| formulas only | {listed(own | set(CONSTANTS) | set(OTHER_NAMES) | set(IN_FORMULAS))} |")
    return "\n".join(rows)


INTERNAL = {"emit", "constant", "convert", "broadcast", "reshaped", "permuted", "item", "tolist", "view"}
"""Methods that are not NumPy's, or are refused."""


def what_cannot_be_traced() -> str:
    """The table of refusals, as docs/build.md has it."""
    rows = ["| what | functions | instead |", "|---|---|---|"]
    return "\n".join(rows + [f"| {r.what} | {listed(r.names.split())} | {textwrap.shorten(r.instead, 400)} |" for r in REFUSALS])


LISTS = {"traced": what_can_be_traced, "refused": what_cannot_be_traced}


@pytest.mark.parametrize("name", LISTS)
def test_the_documentation_lists_them(name: str) -> None:
    page = ROOT / "docs" / "build.md"
    begin, end = f"<!-- list: {name} -->\n", f"\n<!-- end of list: {name} -->"
    text = page.read_text()
    current = re.search(f"{re.escape(begin)}\n(.*?)\n{re.escape(end)}", text, flags=re.S)
    assert current is not None
    if os.environ.get("TIDU_RENEW") == "1":
        page.write_text(text[: current.start(1)] + LISTS[name]() + text[current.end(1) :])
    else:
        assert current[1] == LISTS[name]()
