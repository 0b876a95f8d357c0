"""What is known of values while shapes of a module are worked out: shapes of results, and what integers are as sizes."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidu_cli.adapters.stablehlo.module import Operation
from tidu_cli.adapters.stablehlo.parsing import DTYPES
from tidu_cli.adapters.stablehlo.reading.equivalents import KNOWN_AS
from tidu_cli.adapters.stablehlo.reading.site import RefusedError, array_of, array_type, ints_of
from tidu_cli.errors import TypeRuleError, UndecidedSizeError
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.sizes.open import larger, smaller
from tidu_cli.graph.sizes.polynomials import bounds
from tidu_cli.graph.types import TensorType

MOST_NUMBERS = 64
"""As many elements of arrays of sizes are followed: more axes than an array may have."""

_DYNAMIC = re.compile(r"tensor<((?:(?:\?|\d+)x)*)(complex<f32>|complex<f64>|[a-z]+\d+)>")

BRANCHES = ("stablehlo.case", "stablehlo.if")
"""Operations whose results are those of their regions."""

OF_SIZE = "stablehlo.get_dimension_size"
"""The operation that makes a number of a size: of an axis, or of an attribute `expression`, which modules are given here alone."""


class Value(Frozen, slots=False):
    """What is known of a value: its type, if it is an array, what a few integers are, sizes or numbers, and what computes it."""

    type: TensorType | None
    text: str
    numbers: tuple[Any, ...] | None = None
    by: Operation | None = None


def shape_of_text(text: str) -> tuple[list[int | None], str]:
    """The shape that MLIR writes, None for `?`, and the dtype. Raises RefusedError for other types."""
    match = _DYNAMIC.fullmatch(text)
    if match is None:
        type_ = array_type(text)
        return list(type_.shape), type_.dtype
    return [None if n == "?" else int(n) for n in match[1].split("x")[:-1]], DTYPES.get(match[2], match[2])


# Shapes of results.


def shape_of(x: Value) -> tuple[Any, ...]:
    """The shape of an array. Raises RefusedError for what is none."""
    if x.type is None:
        raise RefusedError("takes something other than an array")
    return x.type.shape


def _same(operation: Operation, operands: Sequence[Value]) -> Any:
    """That of the operand with the most axes: others are scalars."""
    return max(map(shape_of, operands), key=len)


def _first(operation: Operation, operands: Sequence[Value]) -> Any:
    return shape_of(operands[0])


def _given(place: int) -> Callable[[Operation, Sequence[Value]], Any]:
    """The shape that an operand holds."""
    return lambda operation, operands: operands[place].numbers


def _reduced(operation: Operation, operands: Sequence[Value]) -> Any:
    axes = ints_of(operation, "dimensions")
    return tuple(n for k, n in enumerate(shape_of(operands[0])) if k not in axes)


def _joined(operation: Operation, operands: Sequence[Value]) -> Any:
    axis = operation.attributes["dimension"]
    shape = list(shape_of(operands[0]))
    shape[axis] = sum(shape_of(x)[axis] for x in operands)
    return tuple(shape)


def _product(operation: Operation, operands: Sequence[Value]) -> Any:
    numbers = operation.attributes["dot_dimension_numbers"]
    left, right = map(shape_of, operands[:2])
    batch, others = numbers["lhs_batching_dimensions"], numbers["rhs_batching_dimensions"]
    gone = [*batch, *numbers["lhs_contracting_dimensions"]], [*others, *numbers["rhs_contracting_dimensions"]]
    free = [n for k, n in enumerate(left) if k not in gone[0]], [n for k, n in enumerate(right) if k not in gone[1]]
    return (*[left[k] for k in batch], *free[0], *free[1])


def _gathered(operation: Operation, operands: Sequence[Value]) -> Any:
    numbers = operation.attributes["dimension_numbers"]
    sizes = operands[2].numbers if len(operands) > 2 else tuple(ints_of(operation, "slice_sizes"))
    if sizes is None:
        return None
    gone = {*numbers["collapsed_slice_dims"], *numbers["operand_batching_dims"]}
    windows = iter([n for k, n in enumerate(sizes) if k not in gone])
    batch = iter([n for k, n in enumerate(shape_of(operands[1])) if k != numbers["index_vector_dim"]])
    offsets = set(numbers["offset_dims"])
    rank = len(sizes) - len(gone) + len(shape_of(operands[1])) - (numbers["index_vector_dim"] < len(shape_of(operands[1])))
    return tuple(next(windows) if k in offsets else next(batch) for k in range(rank))


def _padded(operation: Operation, operands: Sequence[Value]) -> Any:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    config = [x.numbers for x in operands[2:5]] if len(operands) > 2 else [tuple(ints_of(operation, name)) for name in names]
    if any(c is None for c in config):
        return None
    rows = zip(shape_of(operands[0]), *config, strict=True)
    return tuple(low + n + larger(n - 1, 0) * inside + high for n, low, high, inside in rows)


def _windowed(operation: Operation, operands: Sequence[Value]) -> Any:
    shape = shape_of(operands[0])
    ones = [1] * len(shape)
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    window, strides, base, inner = (ints_of(operation, name) or ones for name in names)
    pads = ints_of(operation, "padding") or [0] * 2 * len(shape)
    spread = [low + larger((n - 1) * b + 1, 0) + high for n, b, low, high in zip(shape, base, pads[::2], pads[1::2], strict=True)]
    return tuple((n - (w - 1) * d - 1) // s + 1 for n, w, d, s in zip(spread, window, inner, strides, strict=True))


def _convolved(operation: Operation, operands: Sequence[Value]) -> Any:
    numbers, (x, kernel) = operation.attributes["dimension_numbers"], [shape_of(o) for o in operands[:2]]
    spatial, inner = numbers["input_spatial_dimensions"], numbers["kernel_spatial_dimensions"]
    ones = [1] * len(spatial)
    strides, base, dilations = (ints_of(operation, name) or ones for name in ("window_strides", "lhs_dilation", "rhs_dilation"))
    pads = operands[2].numbers if len(operands) > 2 else ints_of(operation, "padding") or [0] * 2 * len(spatial)
    if pads is None:
        return None
    sizes = {
        numbers["output_batch_dimension"]: x[numbers["input_batch_dimension"]] // operation.attributes.get("batch_group_count", 1)
    }
    sizes[numbers["output_feature_dimension"]] = kernel[numbers["kernel_output_feature_dimension"]]
    rows = zip(numbers["output_spatial_dimensions"], spatial, inner, strides, base, dilations, pads[::2], pads[1::2], strict=True)
    for k, a, b, stride, spread, dilation, low, high in rows:
        length = low + larger((x[a] - 1) * spread + 1, 0) + high
        sizes[k] = larger((length - (larger(kernel[b] - 1, 0) * dilation + 1)) // stride + 1, 0)
    return tuple(sizes[k] for k in range(len(sizes)))


def _transformed(operation: Operation, operands: Sequence[Value]) -> Any:
    *others, last = shape_of(operands[0])
    kind, length = operation.attributes.get("fft_type"), ints_of(operation, "fft_length")[-1]
    return (*others, {"RFFT": length // 2 + 1, "IRFFT": length}.get(str(kind), last))


def _reinterpreted(operation: Operation, operands: Sequence[Value]) -> Any:
    """That of the operand, without or with a last axis, which is of a known size, for the parts of each element."""
    return (*shape_of(operands[0]), 1)[: len(shape_of_text(operation.results[0])[0])]


def _sliced(operation: Operation, operands: Sequence[Value]) -> Any:
    given = [x.numbers for x in operands[1:4]]
    if any(g is None for g in given):
        return None
    return tuple(-((start - limit) // step) for start, limit, step in zip(*given, strict=True))


SHAPE_OPERANDS = "indices_of_shape_operands"
"""The attribute of custom calls of JAX that says which operands are the shapes of the results."""


def called_shape(operation: Operation, operands: Sequence[Value], k: int) -> Any:
    """The shape of a result of a custom call, if that is an operand."""
    places = ints_of(operation, SHAPE_OPERANDS)
    return operands[places[k]].numbers if places else None


_ELEMENTWISE = (
    "abs add and atan2 cbrt ceil clamp compare complex convert cosine count_leading_zeros divide exponential "
    "exponential_minus_one floor imag is_finite log log_plus_one logistic maximum minimum multiply negate not or popcnt "
    "power real reduce_precision remainder reverse round_nearest_afz round_nearest_even rsqrt select shift_left "
    "shift_right_arithmetic shift_right_logical sign sine sort sqrt subtract tan tanh xor"
)
_SPECIAL = (
    "acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc is_inf lgamma next_after polygamma sinh square "
    "tan zeta"
)
SHAPES: Mapping[str, Callable[[Operation, Sequence[Value]], Any]] = {
    **dict.fromkeys(_ELEMENTWISE.split(), _same),
    **dict.fromkeys(("scatter", "dynamic_update_slice", "select_and_scatter", "cholesky"), _first),
    **{f"chlo.{name}": _same for name in _SPECIAL.split()},
    "triangular_solve": lambda operation, operands: shape_of(operands[1]),
    "bitcast_convert": _reinterpreted,
    "fft": _transformed,
    "convolution": _convolved,
    "dynamic_conv": _convolved,
    "dynamic_broadcast_in_dim": _given(1),
    "dynamic_reshape": _given(1),
    "dynamic_iota": _given(0),
    "reduce": _reduced,
    "reduce_window": _windowed,
    "concatenate": _joined,
    "dot_general": _product,
    "transpose": lambda operation, operands: tuple(shape_of(operands[0])[k] for k in ints_of(operation, "permutation")),
    "gather": _gathered,
    "dynamic_gather": _gathered,
    "pad": _padded,
    "dynamic_pad": _padded,
    "real_dynamic_slice": _sliced,
    "dynamic_slice": lambda operation, operands: tuple(ints_of(operation, "slice_sizes")),
}
"""The shape of the result, by the operation."""


def static(operation: Operation, operands: Sequence[Value]) -> Operation:
    """An operation with the attributes that it has as operands, where these are sizes."""
    if shapes := set(ints_of(operation, SHAPE_OPERANDS)):
        others = [v for k, v in enumerate(operation.operands) if k not in shapes]
        return replace(operation, operands=others, attributes={**operation.attributes, SHAPE_OPERANDS: None})
    name, *into = KNOWN_AS.get(operation.name, ("",))
    if not into or any(x.numbers is None for x in operands[-len(into) :]):
        return operation
    given = {key: list(x.numbers or ()) for key, x in zip(into, operands[-len(into) :], strict=True)}
    return replace(operation, name=name, operands=operation.operands[: -len(into)], attributes={**operation.attributes, **given})


# Sizes as values.


def numbers_of(operation: Operation, operands: Sequence[Value], types: Sequence[TensorType | None]) -> tuple[Any, ...] | None:
    """The integers that a result holds, if they are few and known."""
    name = operation.name.removeprefix("stablehlo.")
    if len(types) != 1 or types[0] is None or types[0].inexact or types[0].rank > 1 + (name in _OF_ROWS):
        return None
    count = types[0].size
    if not isinstance(count, int) or count > MOST_NUMBERS:
        return None
    if name == "constant":
        array, _ = array_of(operation.attributes["value"])
        return tuple(map(int, array.flat)) if array.size == count else (int(array),) * count
    if name == "get_dimension_size":
        return (shape_of(operands[0])[operation.attributes["dimension"]],)
    given = [x.numbers for x in operands]
    if name in _DECIDING and _DECIDING[name] in given:
        return _DECIDING[name]
    known = [g for g in given if g is not None]
    if len(known) < len(given):
        return None
    try:
        return _computed(name, operation, known, count)
    except TypeRuleError:  # what is not decided, or beyond the limits of sizes, as the greatest i64 less a size is
        return None


def _computed(name: str, operation: Operation, given: Sequence[tuple[Any, ...]], count: int) -> tuple[Any, ...] | None:
    if name in ("convert", "reshape", "optimization_barrier"):
        return given[0]
    if name in ("broadcast_in_dim", "dynamic_broadcast_in_dim"):
        return given[0] * count if len(given[0]) == 1 else given[0]
    if name == "concatenate":
        if operation.attributes["dimension"]:
            return None
        return tuple(n for part in given for n in part)
    if name == "slice":
        (start,), (limit,), (step,) = (ints_of(operation, k) for k in ("start_indices", "limit_indices", "strides"))
        return given[0][start:limit:step]
    if name == "select":
        flags = given[0] * count if len(given[0]) == 1 else given[0]
        return tuple(a if flag else b for flag, a, b in zip(flags, given[1], given[2], strict=True))
    function = _RELATIONS.get(str(operation.attributes.get("comparison_direction"))) if name == "compare" else _ARITHMETIC.get(name)
    return tuple(function(*row) for row in zip(*given, strict=True)) if function else None


_OF_ROWS = ("constant", "convert", "reshape", "concatenate")
"""Operations whose results are also followed where they are pairs, as paddings are: of these come pairs one after the other."""

_DECIDING = {"and": (False,), "or": (True,)}
"""What one operand decides, whatever the other is."""


def _divided(a: Any, b: Any) -> Any:
    """The quotient rounded to 0, of a dividend whose sign is known."""
    low, high = bounds(a)
    if low < 0 < high or bounds(b)[0] < 1:
        raise UndecidedSizeError(f"cannot decide the signs of {a} and {b}")
    return a // b if low >= 0 else -(-a // b)


def _rest(a: Any, b: Any) -> Any:
    return a - b * _divided(a, b)


def _sign(a: Any) -> int:
    low, high = bounds(a)
    if not (low > 0 or high < 0 or low == high == 0):
        raise UndecidedSizeError(f"cannot decide the sign of {a}")
    return (low > 0) - (high < 0)


def _equal(a: Any, b: Any) -> bool:
    low, high = bounds(a - b)
    if low <= 0 <= high and not low == high:
        raise UndecidedSizeError(f"cannot decide whether {a} is {b}")
    return low == high == 0


_ARITHMETIC: Mapping[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "negate": operator.neg,
    "maximum": larger,
    "clamp": lambda low, x, high: smaller(larger(x, low), high),
    "minimum": smaller,
    "divide": _divided,
    "remainder": _rest,
    "sign": _sign,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": lambda a: not a,
}
_RELATIONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "EQ": _equal,
    "NE": lambda a, b: not _equal(a, b),
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}
