"""What recipes are written in: arrays of f64 with NumPy's operators and functions, which record what is done with them.

Shapes broadcast as NumPy's do. Numbers and arrays of NumPy are constants.

A graph of single numbers can be applied to every element of such arrays. Values in it that depend on no array stay single numbers,
which are computed once; they are rounded where they meet an array.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from tidu_cli.errors import TiduError, TransformError
from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import Literal, literal_to_numbers
from tidu_cli.graph.types import FLOATS, TensorType
from tidu_cli.lax.reductions.loops import loop
from tidu_cli.rules.recording.trace import Trace
from tidu_cli.rules.terms import Term

Operand = Any
"""An Array, a number, or an array of NumPy."""


def _operators(op: str) -> tuple[Callable[[Any, Operand], Array], Callable[[Any, Operand], Array]]:
    """A primitive as Python's operator: of an Array and what stands on its right, and of one and what stands on its left."""
    return (lambda x, y: _applied(op, x, y)), (lambda x, y: _applied(op, y, x))


class Array:
    """A value of a recording."""

    __array_ufunc__ = None  # an array of NumPy on the left leaves the operation to this one
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, term: Term) -> None:
        self.term = term

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self.term.type.shape

    __add__, __radd__ = _operators("add")
    __sub__, __rsub__ = _operators("sub")
    __mul__, __rmul__ = _operators("mul")
    __truediv__, __rtruediv__ = _operators("div")
    __lt__, __gt__ = _operators("lt")
    __le__, __ge__ = _operators("le")
    __and__ = _operators("and")[0]
    __or__ = _operators("or")[0]
    __eq__ = _operators("eq")[0]  # type: ignore[assignment]
    __ne__ = _operators("ne")[0]  # type: ignore[assignment]

    def __pow__(self, power: Operand) -> Array:
        if isinstance(power, int | float) and math.isfinite(power) and power == int(power) and math.fabs(power) < 2**31:
            return _applied("integer_pow", self, y=int(power))
        return _applied("pow", self, power)

    def __neg__(self) -> Array:
        return _applied("neg", self)

    def __invert__(self) -> Array:
        return _applied("not", self)

    def __getitem__(self, at: object) -> Array:
        """The array with one more axis, the last: `x[..., None]`, or `x[:, None]` of one axis."""
        assert at in ((..., None), (slice(None), None))
        return self.reshape((*self.shape, 1))

    def reshape(self, shape: Sequence[int]) -> Array:
        """The elements in another shape, in the same order."""
        return self if tuple(shape) == self.shape else _applied("reshape", self, new_sizes=tuple(shape))

    def astype(self, dtype: str) -> Array:
        """The elements as another dtype."""
        return self if self.term.type.dtype == dtype else _applied("convert_element_type", self, new_dtype=dtype)


def _applied(op: str, *operands: Operand, **attrs: object) -> Array:
    """An operation of operands that are broadcast to one shape; numbers have the dtype of the first array that is not of bools."""
    arrays = [x for x in operands if isinstance(x, Array)]
    shape = _common(*(getattr(x, "shape", ()) for x in operands))
    dtype = next((x.term.type.dtype for x in arrays if x.term.type.dtype != "bool"), "f64")
    trace = arrays[0].term.trace
    terms = [broadcast_to(x, shape).term if isinstance(x, Array) else _constant(trace, x, shape, dtype) for x in operands]
    return Array(trace.emit(op, *terms, **attrs))


def _common(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    rank = max(map(len, shapes))
    axes = zip(*[(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes], strict=True)
    return tuple([next((n for n in axis if n != 1), 1) for axis in axes])


def broadcast_to(x: Array, shape: tuple[int, ...]) -> Array:
    """The array repeated along new axes in front, and along those of length 1."""
    if x.shape == shape:
        return x
    axes = range(len(shape) - len(x.shape), len(shape))
    return Array(x.term.trace.emit("broadcast_in_dim", x.term, shape=shape, broadcast_dimensions=tuple(axes)))


def _constant(trace: Any, value: Operand, shape: tuple[int, ...], dtype: str) -> Term:
    if isinstance(value, int | float):
        term: Term = trace.full(value, TensorType(dtype, shape))
        return term
    import numpy as np

    if np.ndim(value) == 0:
        return _constant(trace, value.item(), shape, dtype)
    array = np.asarray(value, {"f64": "<f8", "i32": "<i4", "bool": "?"}[dtype])
    literal = Literal(TensorType(dtype, array.shape), array.tobytes())
    return broadcast_to(Array(trace.emit("constant", value=literal)), shape).term


def _function(op: str, **attrs: object) -> Callable[..., Array]:
    def function(*operands: Operand) -> Array:
        return _applied(op, *operands, **attrs)

    function.__name__ = op
    return function


abs = _function("abs")
cos = _function("cos")
digamma = _function("digamma")
erf = _function("erf")
exp = _function("exp")
exp2 = _function("exp2")
expm1 = _function("expm1")
floor = _function("floor")
gammaln = _function("lgamma")
isfinite = _function("is_finite")
log = _function("log")
log1p = _function("log1p")
logistic = _function("logistic")
maximum = _function("max")
minimum = _function("min")
round = _function("round", rounding_method="TO_NEAREST_EVEN")
sign = _function("sign")
sin = _function("sin")
sqrt = _function("sqrt")
tan = _function("tan")


def polygamma(order: int, x: Array) -> Array:
    """The derivative of this order of digamma."""
    return _applied("polygamma", float(order), x) if order else digamma(x)


def where(condition: Array, x: Operand, y: Operand) -> Array:
    """x where the condition holds, else y; of two numbers f64."""
    return _applied("select_n", condition, y, x)


def isnan(x: Array) -> Array:
    """Whether elements are NaN."""
    return x != x


def clip(x: Array, low: float, high: float) -> Array:
    """x, or the bound that it is beyond."""
    return minimum(maximum(x, low), high)


def full_like(x: Array, value: float) -> Array:
    """An array of one number, of x's shape and dtype."""
    return Array(x.term.trace.full(value, x.term.type))


def dot(x: Array, numbers: Any) -> Array:
    """The sums over the last axis of x times a constant array of one axis.

    A product, as XLA's compiler for CPUs has been seen to sum wrong numbers where it fuses a sum with what is computed before it.
    """
    trace, axis = x.term.trace, len(x.shape) - 1
    constant = _constant(trace, numbers, (len(numbers),), "f64")
    return Array(trace.emit("dot_general", x.term, constant, dimension_numbers=(((axis,), (0,)), ((), ()))))


def squares(x: Array) -> Array:
    """The sum of the squares of all elements: a product, which holds no array of squares."""
    axes = tuple(range(len(x.shape)))
    return Array(x.term.trace.emit("dot_general", x.term, x.term, dimension_numbers=((axes, axes), ((), ()))))


def single(x: Array) -> Array:
    """x rounded to the 24 digits of f32, whose squares are exact in f64; compilers keep it, where they may drop conversions."""
    return _applied("reduce_precision", x, exponent_bits=8, mantissa_bits=23)


def apart(x: Array) -> Array:
    """x, which no compiler rounds together with what is done with it next."""
    return _applied("optimization_barrier", x)


def polynomial(coefficients: Sequence[float], x: Operand) -> Operand:
    """Σ c(k) xᵏ, by Horner's rule."""
    value = 0.0 * x + coefficients[-1]
    for c in coefficients[-2::-1]:
        value = value * x + c
    return value


def taken(numbers: Any, index: Array) -> Array:
    """The elements of a constant array of one axis at an index, which is within it."""
    trace, n = index.term.trace, len(numbers)
    indices = index.reshape((*index.shape, 1)).term
    dimensions = {"offset_dims": (), "collapsed_slice_dims": (0,), "start_index_map": (0,)}
    constant = _constant(trace, numbers, (n,), "f64")
    attrs = {"dimension_numbers": dimensions, "slice_sizes": (1,), "mode": "promise_in_bounds"}
    return Array(trace.emit("gather", constant, indices, **attrs))


def repeated(n: int, step: Callable[..., Sequence[Array]], state: Sequence[Array], shared: Sequence[Array]) -> list[Array]:
    """The state after n steps, each from (the arrays that are shared, and the state before it)."""
    terms = loop(n, lambda *xs: [y.term for y in step(*map(Array, xs))], [x.term for x in shared], [x.term for x in state])
    return list(map(Array, terms))


# Functions of one number by piecewise polynomials: SciPy's are interpolated once, and graphs hold the coefficients.
#
# Pieces are of equal ratio, so that a singularity at 0 is as far from each of them, in halves of its length, as from every other;
# interpolation in Chebyshev points then converges as fast in all (L. N. Trefethen, "Approximation theory and approximation
# practice" (2013), theorem 8.2).

SAMPLES = 256
"""Of a piece: more than it has coefficients, so that roundings of values are averaged out."""


def table(
    function: Callable[[Any], Any], low: float, high: float, per_octave: float = 2.0, degree: int = 16
) -> Callable[[Array], Array]:
    """A function of NumPy's arrays as one of Arrays, between two positive numbers; beyond these it is what it is there.

    `per_octave`: pieces between a number and twice that. Two are enough for what is singular at 0 alone.
    """
    import numpy as np

    count = max(1, math.ceil(per_octave * math.log2(high / low)))
    edges = low * (high / low) ** (np.arange(count + 1) / count)
    middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    # cos(jπ / 2n), of angles below 2π: rounded ones of high orders would be off by many units.
    cosines = np.cos(2 * np.arctan(np.longdouble(1)) / SAMPLES * np.arange(4 * SAMPLES))
    odd = 2 * np.arange(SAMPLES) + 1
    with np.errstate(all="ignore"):
        values = np.asarray(function(middle[:, None] + half[:, None] * cosines[odd].astype(float)))
        waves = cosines[odd[:, None] * np.arange(degree + 1) % (4 * SAMPLES)]
        coefficients = (values @ waves * 2 / SAMPLES).astype(float)
    coefficients[:, 0] /= 2
    inverse_width = count / math.log(high / low)

    def evaluate(x: Array) -> Array:
        within = clip(x, low, high)
        piece = clip(floor((log(within) - math.log(low)) * inverse_width), 0.0, count - 1.0)
        index = where(isnan(piece), 0.0, piece).astype("i32")
        t = (within - taken(middle, index)) / taken(half, index)
        # C. W. Clenshaw (1955).
        last = before = full_like(x, 0.0)
        for column in coefficients.T[:0:-1]:
            last, before = 2.0 * t * last - before + taken(column, index), last
        return t * last - before + taken(coefficients.T[0], index)

    return evaluate


ELEMENTS = "does not go by elements, and a graph of numbers is applied to each element of arrays"


def mapped(
    trace: Trace, graph: Graph, arrays: Mapping[Key, Array], numbers: Mapping[Key, Array], type_: TensorType, wide: str
) -> list[Array]:
    """The outputs of a graph of f64[], as arrays of `type_`: where inputs are the elements of `arrays`, or these `numbers`.

    Numbers are of the dtype `wide`, and constants of the graph become that.
    Raises TransformError naming the node that does not go by elements.
    """
    values = [arrays[i.key] if i.key in arrays else numbers[i.key] for i in graph.inputs]
    varies = [i.key in arrays for i in graph.inputs]

    def fitting(x: Array) -> Array:
        rounded = x.astype(type_.dtype) if x.term.type.dtype in FLOATS else x
        return broadcast_to(rounded, type_.shape)

    for node, (code, args, _, _) in enumerate(forwards(graph, graph.args)):
        case, one = graph.cases[code], any(varies[a] for a in args)
        if case.op == "constant" and case.results == (TensorType("f64", ()),):
            (number,) = literal_to_numbers(case.attrs.value)  # type: ignore[attr-defined]
            values.append(Array(trace.full(cast(float, number), TensorType(wide, ()))))
            varies.append(False)
            continue
        operands = [fitting(values[a]) if one else values[a] for a in args]
        try:
            results = trace.apply(case.op, case.attrs, [x.term for x in operands])
        except TiduError as error:
            raise TransformError(f"{graph.describe(node)}: {ELEMENTS} ({error})") from None
        if any(not isinstance(x.value_type, TensorType) or x.type.shape != (type_.shape if one else ()) for x in results):
            raise TransformError(f"{graph.describe(node)}: {ELEMENTS}")
        values += map(Array, results)
        varies += [one] * len(results)
    return [fitting(Array(trace.full(0, type_)) if o.value is None else values[o.value]) for o in graph.outputs]
