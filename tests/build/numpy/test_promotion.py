"""Every function gives NumPy's dtypes and shapes, whatever its operands are: arrays, Python numbers, NumPy scalars, lists.

What NumPy computes and graphs refuse is in `REFUSED`, with words of the message. Anything else that is refused is a failure, and so
is a function that stands in no call.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.special

from tests.build.comparing import check as check_values
from tests.build.comparing import type_of
from tests.tiers import few
from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.formulas.formula import build_formula, function_names
from tidu_cli.adapters.numpy.formulas.language import OPTIONS_REFUSED, OTHER_NAMES
from tidu_cli.adapters.numpy.numpy.elementwise.elementwise import UFUNCS
from tidu_cli.adapters.numpy.numpy.elementwise.special import COMPLEX
from tidu_cli.adapters.numpy.numpy.elementwise.special_parameters import WITH_PARAMETERS
from tidu_cli.adapters.numpy.numpy.elementwise.ufuncs import SCIPYS, ufunc_named
from tidu_cli.adapters.numpy.numpy.functions import ALIASES, FUNCTIONS, NOT_NUMPYS
from tidu_cli.adapters.numpy.numpy.putting import WRITING
from tidu_cli.adapters.numpy.recorder import Recorder
from tidu_cli.errors import TiduError
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import parse_type

DTYPES = ("bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64", "complex64", "complex128")
NUMBERS = (True, 2, 2.0, 2j)

Shape = tuple[int, ...]
Types = list[tuple[Any, Shape]]
S, V, M = (), (3,), (3, 3)


class Call(NamedTuple):
    """A call of NumPy's or SciPy's functions: its operands `a` and `b` have these shapes, unless they are numbers."""

    text: str
    a: Shape = V
    b: Shape | None = None

    @property
    def names(self) -> set[str]:
        """The functions that it calls, as `FUNCTIONS` and formulas name them."""
        return {re.sub(r"^(np|special)\.", "", name) for name in re.findall(r"([\w.]+)\(", self.text)}

    @property
    def formula(self) -> str | None:
        """The same as a formula, None if formulas have no such function or option."""
        text = re.sub(r"\b(np|linalg|special)\.", "", self.text.replace("np.float32", "f32"))
        options = set(re.findall(r"(\w+)=", text))
        ours = set(re.findall(r"(\w+)\(", text)) <= set(function_names()) and not options & OPTIONS_REFUSED
        ours = ours and not self.text.startswith("special.i0(")  # in formulas it is NumPy's
        return text if ours and not re.search(r"[a-z]\.[a-z]", text) else None


def pairs(*texts: str, a: Shape = V, b: Shape = V) -> list[Call]:
    return [Call(text, a, b) for text in texts]


def singles(*texts: str, a: Shape = V) -> list[Call]:
    return [Call(text, a) for text in texts]


def ufuncs(arity: int) -> list[str]:
    """Calls of all ufuncs that have so many operands beside parameters; of three, the last is a number."""
    calls = []
    for name in sorted({**UFUNCS, **SCIPYS}):
        n = WITH_PARAMETERS[name].n if name in WITH_PARAMETERS else 0
        operands = ["1"] * n + ["a", "b", "0.5"][: ufunc_named(name).nin - n]
        if len(operands) - n == arity or (len(operands) - n == 3 and arity == 2):
            calls.append(f"{'np' if name in UFUNCS else 'special'}.{name}({', '.join(operands)})")
    return calls


OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">=", "==", "!=")
INITIAL = ("sum", "prod", "max", "min", "amax", "amin", "nansum", "nanprod", "nanmax", "nanmin")
JOINING = [f"np.{name}([a, b])" for name in ("stack", "vstack", "hstack", "dstack", "column_stack", "block")]

PAIRS = [
    *pairs(*(f"a {operator} b" for operator in OPERATORS), *ufuncs(2), "np.subtract.outer(a, b)"),
    *pairs("a @ b", "np.matmul(a, b)", "np.vecdot(a, b)", "np.linalg.vecdot(a, b)"),
    *pairs("np.linalg.matmul(a, b)", "np.linalg.multi_dot([a, b])", a=M, b=M),
    *pairs("np.matvec(a, b)", "np.linalg.solve(a, b)", "np.linalg.tensorsolve(a, b)", a=M),
    *pairs("np.linalg.lstsq(a, b)", a=M),
    *pairs("np.vecmat(a, b)", b=M),
    *pairs(*(f"np.{name}(a, b)" for name in ("dot", "inner", "outer", "vdot", "kron", "cross", "convolve", "correlate"))),
    *pairs("np.linalg.outer(a, b)", "np.linalg.cross(a, b)", "np.linalg.tensordot(a, b, axes=1)"),
    *pairs("np.tensordot(a, b, 0)", "np.tensordot(a, b, 1)", "np.einsum('i,i->i', a, b)",
           "np.einsum(a, [0], b, [0], [0])", "np.polyfit(a, b, 1)"),
    *pairs("np.einsum('i,->i', a, b)", b=S),
    *pairs("np.einsum(',i', a, b)", a=S),
    *pairs(*JOINING, "np.concatenate([a, b])", "np.concatenate([a, b], axis=None)", "np.concat([a, b])"),
    *pairs(*JOINING, a=S, b=S),
    *pairs("np.append(a, b)", "np.append(a, b, axis=0)", "np.broadcast_arrays(a, b)", "np.meshgrid(a, b)", "np.atleast_1d(a, b)"),
    *pairs("np.full_like(a, b)", "np.diff(a, prepend=b)", "np.diff(a, append=b)", "np.ediff1d(a, to_end=b)",
           "np.ediff1d(a, to_begin=b)"),
    *pairs("np.insert(a, 1, b)", "np.pad(a, 1, constant_values=b)", "np.nan_to_num(a, nan=b)", b=S),
    *pairs("np.where(mask, a, b)", "np.where(a, b, 0)", "np.select([mask], [a], b)", "np.select([mask, mask], [a, b])"),
    *pairs("np.clip(a, b, None)", "np.clip(a, None, b)", "np.clip(a, 0, b)", "np.clip(2, a, b)"),
    *pairs("np.isclose(a, b)", "np.allclose(a, b)", "np.array_equal(a, b)", "np.isin(a, b)"),
    *pairs("np.searchsorted(a, b)", "np.digitize(a, b)", "np.interp(a, b, [1.0, 2.0, 3.0])",
           "np.interp(a, [0.0, 1.0, 2.0], b)", "np.interp([0.5, 1.5], a, b)"),
    *pairs("np.interp([0.5, 1.5], [0.0, 1.0, 2.0], a, left=b)", b=S),
    *pairs(*(f"np.{name}(a, initial=b)" for name in INITIAL),
           "np.max(a, initial=b, where=mask)", b=S),
    *pairs("np.average(a, weights=b)", "np.cov(a, b)", "np.corrcoef(a, b)", "np.quantile(a, b)", "np.quantile(a, b / 4)",
           "np.percentile(a, b)"),
    *pairs("np.linspace(a, b, 4)", "np.linspace(a, b, 4, endpoint=False)", "np.trapezoid(a, b)", "np.polyval(a, b)",
           "np.gradient(a, b)"),
    *pairs("np.trapezoid(a, dx=b)", "np.polyval(a, b)", "np.gradient(a, b)", b=S),
    *pairs("np.result_type(a, b)"),
]  # fmt: skip
"""Every function of two operands."""

OF_FORMULAS = [
    *pairs("np.array([a, b])", "np.add([a, 1], b)", "np.add([[a, 1.0], [b, b]], a)", "np.linspace(a, b, 4)", a=S, b=S),
    *singles("np.full(2, a)", "np.array(a)", a=S),
    *singles("np.take_along_axis(a, np.argsort(a), 0)"),
]
"""What only formulas have: lists that hold arrays, and creation from them. NumPy asks these for their values."""

SINGLES = [
    *singles(*ufuncs(1), "-a", "~a", "abs(a)", "a ** 0", "a ** 3", "a ** -1", "a ** 0.5", "a ** 2.0", "np.power(a, 2)"),
    *singles("a.T", "a.conj()", "a.real", "a.imag", "a.mean()", "a.dot(a)", "np.real(a)", "np.imag(a)", "np.angle(a)",
             "np.angle(a, True)", "np.logaddexp.reduce(a)", "np.add.accumulate(a)"),
    *singles("np.reshape(a, (3, 1))", "np.ravel(a)", "np.transpose(a)", "np.permute_dims(a)", "np.swapaxes(a, 0, 0)",
             "np.moveaxis(a, 0, 0)", "np.rollaxis(a, 0)", "np.expand_dims(a, 0)", "np.squeeze(a)", "np.broadcast_to(a, (2, 3))",
             "np.atleast_2d(a)", "np.atleast_3d(a)", "np.flip(a)", "np.flipud(a)", "np.resize(a, 5)", "np.array_split(a, 2)",
             "np.split(a, 3)", "np.hsplit(a, 3)", "np.unstack(a)", "np.tile(a, 2)", "np.repeat(a, 2)", "np.roll(a, 1)",
             "np.delete(a, 1)", "np.fft.fftshift(a)", "np.fft.ifftshift(a)", "np.lib.stride_tricks.sliding_window_view(a, 2)",
             "np.diagflat(a)", "np.vander(a)", "np.vander(a, increasing=True)", "np.take(a, [0, 1])",
             "np.take_along_axis(a, np.array([0, 1], like=a), 0)"),
    *singles(*(f"np.fft.{inverse}{name}(a)" for inverse in ("", "i") for name in ("fft", "fftn", "rfft", "rfftn", "hfft"))),
    *singles(*(f"np.fft.{name}(a)" for name in ("fft2", "ifft2", "rfft2", "irfft2")), a=M),
    *singles("np.matrix_transpose(a)", "np.linalg.matrix_transpose(a)", "np.fliplr(a)", "np.rot90(a)", "np.vsplit(a, 3)",
             "np.dsplit(np.reshape(a, (1, 3, 3)), 3)", "np.tril(a)", "np.triu(a)", "np.diagonal(a)", "np.linalg.diagonal(a)",
             "np.diag(a)", "np.trace(a)", "np.linalg.trace(a)", "np.einsum('ii->i', a)", a=M),
    *singles("np.linalg.inv(a)", "np.linalg.det(a)", "np.linalg.slogdet(a)", "np.linalg.cholesky(a)",
             "np.linalg.matrix_power(a, 3)", "np.linalg.matrix_power(a, 0)", "np.linalg.tensorinv(a, 1)",
             "np.linalg.matrix_norm(a)", "np.linalg.norm(a, 1)", "np.linalg.norm(a, ord='fro')", "np.cov(a)", "np.corrcoef(a)",
             a=M),
    *singles(*(f"np.linalg.{name}(a)" for name in ("qr", "svd", "svdvals", "eigh", "eigvalsh", "pinv", "matrix_rank", "cond")),
             "np.linalg.eig(a * 1j)", "np.linalg.eigvals(a * 1j)", "np.linalg.norm(a, 2)", a=M),
    *singles(*(f"np.linalg.norm(a, {order})" for order in ("None", "0", "1", "3", "np.inf", "-np.inf")),
             "np.linalg.vector_norm(a)"),
    *singles(*(f"np.{name}(a)" for name in (
        "sum", "prod", "max", "min", "amax", "amin", "all", "any", "count_nonzero", "ptp", "argmax", "argmin", "cumsum", "cumprod",
        "cumulative_sum", "cumulative_prod", "nansum", "nanprod", "nanmax", "nanmin", "nanargmax", "nanargmin", "nancumsum",
        "nancumprod", "mean", "var", "std", "average", "median", "nanmean", "nanvar", "nanstd", "cov", "corrcoef", "sort",
        "argsort", "diff", "ediff1d", "gradient", "trapezoid", "iscomplex", "isneginf", "isposinf", "isreal", "sinc", "i0", "fix",
        "around", "round", "nan_to_num", "copy", "empty_like", "zeros_like", "ones_like", "ndim", "shape", "size", "iscomplexobj",
        "isrealobj"))),
    *singles("np.partition(a, 1)", "np.argpartition(a, 1)", "np.bincount([0, 1, 1], weights=a)",
             "np.histogram([0.5, 1.5, 2.5], 2, weights=a)", "np.histogram([0.5, 1.5, 2.5], 2, density=True, weights=a)",
             "np.histogram2d([0.5, 1.5, 2.5], [1.0, 2.0, 3.0], 2, weights=a)",
             "np.histogramdd([[0.5, 1.5, 2.5]], 2, weights=a)"),
    *singles("np.sum(a, dtype=np.float32)", "np.cumsum(a, dtype=np.float32)", "np.mean(a, dtype=np.float32)",
             "np.var(a, dtype=np.float32)", "np.cov(a, dtype=np.float32)", "np.corrcoef(a, dtype=np.float32)",
             "np.sum(a, where=mask)", "np.prod(a, where=mask)", "np.all(a, where=mask)", "np.mean(a, where=mask)",
             *(f"np.{name}(a, where=mask)" for name in ("nansum", "nanmean", "nanvar", "nanstd")),
             "np.cumulative_sum(a, include_initial=True)", "np.median(a, keepdims=True)", "np.round(a, 1)", "np.round(a, -1)",
             "np.pad(a, 1)", "np.astype(a, np.float32)", "np.asarray(a, like=a)", "np.can_cast(a, np.float32)"),
    *singles(*(f"np.quantile(a, {q})" for q in ("0.3", "1", "[0.3]", "[0, 1]", "np.float32(0.3)", "0.3, method='lower'",
                                                "0.3, method='midpoint'")),
             "np.percentile(a, 30)", "np.percentile(a, [30])"),
]  # fmt: skip
"""Every function of one operand."""


class Refused(NamedTuple):
    """What NumPy computes and graphs refuse: a call, the operands for which this is so, and words of the message."""

    call: str
    when: Callable[[Any, Any, np.dtype], bool]
    words: str


def traced(x: object) -> bool:
    return isinstance(x, Array)


def dtype_of(x: Any) -> np.dtype:
    return x.dtype if traced(x) else np.asarray(x).dtype


def a_is_complex(a: Any, b: Any, result: np.dtype) -> bool:
    return dtype_of(a).kind == "c"


def any_is_complex(a: Any, b: Any, result: np.dtype) -> bool:
    return a_is_complex(a, b, result) or (b is not None and dtype_of(b).kind == "c")


REAL_HERE = [name for name in SCIPYS if name not in COMPLEX and any("D" in types for types in ufunc_named(name).types)]
"""SciPy's functions that are of complex numbers, too, which those of graphs are not."""

REFUSED = [
    Refused(
        r"a [<>]=? b|np\.(less|greater)(_equal)?\(.*|np\.f?(max|min)(imum)?\(a, b\)|np\.(clip|searchsorted)\(.*",
        any_is_complex,
        "no order",
    ),
    Refused(r"np\.(nan)?(arg|a)?(max|min)\(a\)|np\.(nan|a)?(max|min)\(a, .*|np\.ptp\(a\)", a_is_complex, "no order"),
    Refused(
        r"a \*\* b|np\.power\(a, b\)",
        lambda a, b, result: result.kind in "iu" and not (traced(a) and np.ndim(b) == 0 and not traced(b)),
        "power of integers .* with an exponent that is not a constant; convert the base first",
    ),
    Refused(rf"special\.({'|'.join(REAL_HERE)})\(.*a\)", a_is_complex, "take it of real numbers"),
    Refused(r"np\.(round|around)\(a\)", lambda a, b, result: dtype_of(a).kind == "b", "convert it first"),
    Refused(r"np\.round\(a, -1\)", lambda a, b, result: dtype_of(a).kind in "iu", "convert it first"),
    Refused(r"np\.(quantile|percentile)\(a, b.*", lambda a, b, result: traced(b), "traced for constant q"),
    Refused(r"np\.gradient\(a, b\)", lambda a, b, result: traced(b) or dtype_of(b).kind == "c", "with .* constant real distances"),
]

OF_NUMPYS_DISPATCH = (
    "np.full_like(a, b)",
    "np.pad(a, 1, constant_values=b)",
    "np.interp([0.5, 1.5], [0.0, 1.0, 2.0], a, left=b)",
    *(f"np.{name}(a, initial=b)" for name in INITIAL),
)
"""Calls of which NumPy asks only `a` whether it is traced. So it computes itself where only `b` is, which has no value."""


OF_COPYTO = "np.nan_to_num(a, nan=b)"
"""The same, where `a` may have NaN: all else NumPy gives back as it is."""


def refusals(call: Call, *, formula: bool) -> list[Refused]:
    refused = [r for r in REFUSED if re.fullmatch(r.call, call.text)]
    if call.text in (*OF_NUMPYS_DISPATCH, OF_COPYTO) and not formula:
        words = "needs the value of an array|np.copyto cannot be traced"
        refused.append(Refused("", lambda a, b, result: not traced(a) and (call.text != OF_COPYTO or result.kind in "fc"), words))
    return refused


def constants(shape: Shape, *, scalars: bool) -> Iterator[object]:
    """Python's numbers, NumPy's scalars, and lists of numbers."""
    yield from NUMBERS
    if scalars:
        yield from (np.dtype(dtype).type(1) for dtype in DTYPES)
    if shape:
        yield from (array(shape, type(number)).tolist() for number in NUMBERS)


def array(shape: Shape, dtype: Any) -> Any:
    return np.eye(3, dtype=dtype) if shape == M else np.ones(shape, dtype)


def typed(result: Any) -> Types:
    """The dtypes and shapes of results. Other things, such as a shape, stay as they are."""
    if isinstance(result, tuple | list) and not (result and all(isinstance(x, int) for x in result)):
        return [t for x in result for t in typed(x)]
    if isinstance(result, tuple | np.dtype | int) and not isinstance(result, bool):
        return [(result, ())]
    return [(result.dtype, result.shape) if traced(result) else (np.asarray(result).dtype, np.shape(result))]


Apply = Callable[[Any, Any, int], Types]
"""From operands, of which one is traced at least, and the number of results, to the types that tidu gives these."""


def outcome(apply: Apply, a: Any, b: Any, n_results: int) -> tuple[Types | None, str]:
    """The types of the results, or the message that the operands are refused with."""
    try:
        return apply(a, b, n_results), ""
    except Exception as error:
        reason = error if isinstance(error, TiduError) else error.__cause__  # NumPy hides it behind an error of its own
        if not isinstance(reason, TiduError):
            raise AssertionError(f"{a}, {b}: {error!r}") from error
        return None, str(reason)


def check(call: Call, cases: Iterator[tuple[Any, Any]], apply: Apply, *, formula: bool) -> None:
    """For each pair of operands the types are NumPy's, or the refusal is as listed."""
    code = compile(call.text, call.text, "eval")
    names = {"np": np, "special": scipy.special, "mask": np.ones(3, bool)}
    accepted, listed, met = 0, refusals(call, formula=formula), set()
    for a, b in cases:
        plain = [array(x.shape, x.dtype) if traced(x) else x for x in (a, b)]
        try:
            expected = typed(eval(code, {**names, "a": plain[0], "b": plain[1]}))
        except (TypeError, ValueError, IndexError, OverflowError, np.exceptions.ComplexWarning):
            continue  # NumPy refuses it, or warns of what is lost
        if not expected:
            continue  # the gradient of a number
        accepted += 1
        ours, message = outcome(apply, a, b, len(expected))
        refused = [k for k, r in enumerate(listed) if r.when(a, b, expected[0][0])]
        if refused:
            told = {k for k in refused if re.search(listed[k].words, message)}
            assert ours is None and told, (a, b, ours, message)
            met |= told
        else:
            assert ours == expected, (a, b, message)
    assert accepted >= 3, "NumPy takes hardly any of these operands"
    assert met == set(range(len(listed))), "some of what is listed as refused never occurs"


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """NumPy divides by zero and overflows without a warning, but what it loses of complex numbers is an error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", np.exceptions.ComplexWarning)
        yield


@pytest.mark.parametrize("call", few([*PAIRS, *SINGLES], 40), ids=lambda call: call.text)
def test_functions_of_traced_arrays(call: Call) -> None:
    recorder = Recorder()
    xs, ys = (
        [recorder.input(Key(f"{name}.{dtype}"), type_of(array(shape, dtype))) for dtype in DTYPES if shape is not None]
        for name, shape in (("a", call.a), ("b", call.b))
    )
    mask = recorder.input(Key("mask"), type_of(np.ones(3, bool)))
    code = compile(call.text, call.text, "eval")

    def operands() -> Iterator[tuple[Any, Any]]:
        if call.b is None:
            yield from ((x, None) for x in xs)
            return
        yield from ((x, y) for x in xs for y in [*ys, *constants(call.b, scalars=True)])
        yield from ((x, y) for y in ys for x in constants(call.a, scalars=True))

    def apply(a: Any, b: Any, n_results: int) -> Types:
        return typed(eval(code, {"np": np, "special": scipy.special, "mask": mask, "a": a, "b": b}))

    check(call, operands(), apply, formula=False)


@pytest.mark.parametrize(
    "call", few([c for c in (*PAIRS, *OF_FORMULAS, *SINGLES) if c.formula is not None], 140), ids=lambda call: call.text
)
def test_functions_of_formulas(call: Call) -> None:
    dtypes = ("bool", "int32", "uint64", "float16", "float32", "float64", "complex64")
    recorder = Recorder()
    xs, ys = (
        [recorder.input(Key(f"{name}.{dtype}"), type_of(array(shape, dtype))) for dtype in dtypes if shape is not None]
        for name, shape in (("a", call.a), ("b", call.b))
    )

    def operands() -> Iterator[tuple[Any, Any]]:
        if call.b is None:
            yield from ((x, None) for x in xs)
            return
        yield from ((x, y) for x in xs for y in constants(call.b, scalars=False))
        yield from ((x, y) for y in ys for x in constants(call.a, scalars=False))

    def apply(a: Any, b: Any, n_results: int) -> Types:
        inputs = {"mask": type_of(np.ones(3, bool))}
        text = str(call.formula)
        for name, x in (("a", a), ("b", b)):
            if traced(x):
                inputs[name] = x.type
            else:
                text = re.sub(rf"\b{name}\b", repr(x), text)
        if n_results > 1:
            text = f"{', '.join(f'y{k}' for k in range(n_results))} = {text}"
        outputs = build_formula(text, inputs).head.outputs
        return [(np.dtype(NUMPYS[o.type.dtype]), o.type.shape) for o in outputs]

    check(call, operands(), apply, formula=True)


NUMPYS = {type_of(np.ones((), dtype)).dtype: dtype for dtype in (*DTYPES, "int16", "uint16", "uint32")}


def test_no_function_is_left_out() -> None:
    """The calls above are of every function, but for those that have no operands, or no counterpart in NumPy."""
    called = {name.removeprefix("lib.stride_tricks.") for call in (*PAIRS, *SINGLES) for name in call.names}
    assert {*FUNCTIONS, *SCIPYS} - NOT_NUMPYS - called - set(WRITING) - OF_SHAPES == set()
    formulas = [call.formula for call in (*PAIRS, *OF_FORMULAS, *SINGLES) if call.formula is not None]
    called = {name for text in formulas for name in re.findall(r"(\w+)\(", text)}
    others = {*ALIASES, *OTHER_NAMES, *NOT_NUMPYS, *WITHOUT_OPERANDS, *NOT_IN_NUMPY}
    assert set(function_names()) - called - others == set()


OF_SHAPES = {"diag_indices_from", "tril_indices_from", "triu_indices_from"}
"""Functions that read the shape of their operand only, and give arrays of NumPy's."""

WITHOUT_OPERANDS = ("arange", "datetime64", "eye", "ones", "timedelta64", "zeros")
"""Functions of formulas that take sizes and units only."""

NOT_IN_NUMPY = ("convert", "stop_gradient", "solve_triangular")
"""Functions of formulas that NumPy has not got."""


# Values that depend on what gives way.

F32 = np.array([0.1, 0.5, 1.0], np.float32)

DECIDED = {
    "a number is an array": (lambda x: np.searchsorted(x, 0.1, side="right"), F32),
    "a number among the elements": (lambda x: np.isin(x, 0.1), F32),
    "a number gives way": (lambda x: np.isclose(x, 0.1, rtol=0, atol=0), F32),
    "a number gives way on the left": (lambda x: np.isclose(0.1, x, rtol=0, atol=0), F32),
    "differences of bools": (lambda x: np.isclose(x, True), np.array([True, False])),
    "differences of unsigned numbers": (lambda x: np.isclose(x, np.array([2, 1], np.uint8)), np.array([1, 2], np.uint8)),
    "choices give way": (lambda x: np.select([x > 0.7, x > 0.3], [0.1, x], 0.1), F32),
    "the element itself": (lambda x: np.quantile(x, 1), np.array([2**62 + 1, 0, 1])),
    "the element itself, of several": (lambda x: np.quantile(x, [0, 1]), np.array([-np.inf, 1.0, np.inf])),
    "quantiles in double precision": (lambda x: np.quantile(x, np.float64(0.3)), F32),
    "quantiles in single precision": (lambda x: np.quantile(x, 0.3), F32),
    "a start is converted": (lambda x: np.sum(x, initial=2.7), np.array([1, 2])),
    "a start of a maximum": (lambda x: np.max(x, initial=2.7), np.array([1, 2])),
    "without NaN, from a start": (lambda x: np.nanmax(x, initial=-1.0), np.array([np.nan, -2.0])),
    "only NaN, from a start": (lambda x: np.nanmin(x, initial=-1.0), np.array([np.nan])),
    "without NaN, where": (lambda x: np.nanvar(x, where=[True, True, False, True], ddof=1), np.array([1.0, np.nan, 9.0, 2.0])),
    "without NaN, corrected": (lambda x: np.nanstd(x, correction=1), np.array([1.0, np.nan, 9.0, 2.0])),
    "the mean where": (lambda x: np.nanmean(x, where=[True, True, False]), np.array([1.0, np.nan, 9.0])),
    "no coefficients": (lambda x: np.polyval([], x), F32),
    "coefficients and a bool": (lambda x: np.polyval(x, True), F32),
    "the covariance in double precision": (lambda x: np.cov(x), F32),
    "a matrix of one row": (lambda x: np.cov(x[None], rowvar=False), F32),
    "weights in double precision": (lambda x: np.average(x, weights=[0.1, 0.2, 0.7]), F32),
    "the power of a bool": (lambda x: x**True, np.array([2, 3])),
    "the square of bools": (lambda x: x**2, np.array([True, False])),
    "the angle of integers": (lambda x: np.angle(x), np.array([-1, 0, 1])),
    "the conjugate of bools": (lambda x: np.vdot(x, x), np.array([True, False])),
    "padding that is traced": (lambda x: np.pad(x, 1, constant_values=x.sum()), F32),
    "convolution with a number": (lambda x: np.convolve(x, 3), np.array([1, 2])),
}


@pytest.mark.parametrize("name", DECIDED)
def test_values_where_promotion_decides(name: str) -> None:
    check_values(*DECIDED[name])


COMPARISONS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


def test_signed_and_unsigned_integers_are_compared_exactly() -> None:
    """As integers, and not as the floats that have room for both."""
    signed, unsigned = np.array([-(2**63), -1, 0, 1, 2**63 - 1]), np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)
    for compare in COMPARISONS:
        check_values(lambda x, y, compare=compare: compare(x[:, None], y), signed, unsigned)
        check_values(lambda x, y, compare=compare: compare(y, x[:, None]), signed, unsigned)


@pytest.mark.parametrize(("text", "dtype"), [("x * 2", "bf16"), ("2.5 - x", "bf16"), ("x + 2j", "c64"), ("dot(x, 2.0)", "f64")])
def test_numbers_and_bf16(text: str, dtype: str) -> None:
    """Numbers give way to it where they do to others. Arrays of them are doubles."""
    (output,) = build_formula(text, {"x": parse_type("bf16[3]")}).head.outputs
    assert output.type.dtype == dtype


def test_dtypes_that_have_none_in_common() -> None:
    with pytest.raises(TiduError, match="NumPy has no common dtype of bf16, i64; convert one of them"):
        build_formula("append(x, 2)", {"x": parse_type("bf16[3]")})
