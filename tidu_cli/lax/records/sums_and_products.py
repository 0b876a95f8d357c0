"""Sums and products: of arrays of numbers, and of vectors that are none: durations, and records of tangents.

A number scales them: one for each element of durations, a single one for all of a record. Tangents of one thing add up whichever
types they have, for what is added are natural ones (`tidu_cli.rules.tangents.joined`): here operands become those.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

from tidu_cli.errors import MissingRuleError, TypeRuleError
from tidu_cli.graph import types
from tidu_cli.lax.arrays.dtypes import numpy_dtype
from tidu_cli.lax.records.joining import joining_batch, joining_kernel, strong_product, strong_quotient
from tidu_cli.rules import families
from tidu_cli.rules.analysis import dividing, multiplying, per_element
from tidu_cli.rules.batching import itself, spread, stacked
from tidu_cli.rules.contract import JVP, TOGETHER, Batching, BatchRule, Example, Kernel, TransposeRule, Transposition, ValueTypes
from tidu_cli.rules.recording.conversion import converted, converted_cotangent
from tidu_cli.rules.tangents import scaled_operand
from tidu_cli.rules.terms import Term, field, fieldwise, op

convert, real, reduce_sum = op("convert_element_type"), op("real"), op("reduce_sum")

ADDABLE = types.NUMERIC | types.DURATIONS
"""The dtypes that have sums."""


def add_types(attrs: Any, operands: ValueTypes) -> ValueTypes:
    """The type of a sum, of operands that have been given one type if they have one in which they add up."""
    record = next((t for t in operands if isinstance(t, types.RecordType)), None)
    if record is None:
        return families.of_one_type(ADDABLE)(attrs, operands)  # type: ignore[arg-type]
    for k, t in enumerate(operands):
        if t != operands[0]:
            raise TypeRuleError(f"type mismatch: input 0 is {operands[0]}, input {k} is {t}; only records of one type add up")
    for path, leaf in types.leaves(record):
        if leaf.dtype not in ADDABLE:
            raise TypeRuleError(f"inputs are of type {record}, whose field '{'.'.join(path)}' is {leaf}, which has no sum")
    return (record,)


def _sub_types(attrs: Any, operands: ValueTypes) -> ValueTypes:
    if any(isinstance(t, types.RecordType) for t in operands):
        return add_types(attrs, operands)
    (type_,) = families.of_one_type(types.NUMERIC | types.TIMES)(attrs, operands)  # type: ignore[arg-type]
    return (types.tensor_tangent_type(type_) if type_.dtype in types.DATETIMES else type_,)


def _sub_kernel(np: Any, attrs: Any, operands: ValueTypes, results: ValueTypes) -> Kernel:
    first = operands[0]
    if isinstance(first, types.TensorType) and first == operands[1]:
        return families.numpy_function("subtract", types.DATETIMES, _duration_between)(np, attrs, operands, results)  # type: ignore[arg-type]
    if any(t != results[0] for t in operands):
        return joining_kernel(np, _sub_kernel(np, attrs, results * 2, results), operands, results[0])
    return _of_pairs(np.subtract, _fieldwise(np.negative))


def _duration_between(np: Any, x: Any, y: Any) -> Any:
    from tidu_cli.rules.units import between  # here, as times are rare

    return between(np, x, y)


def _sub_jvp(node: JVP) -> Sequence[Term | None]:
    natural = types.tangent_type(node.results[0].value_type)
    return [families.minus(*[t and converted(t, natural) for t in node.tangents])]


def _sub_transpose(node: Transposition) -> Sequence[Term | None]:
    ct, (to_x, to_y) = node.cotangent, node.active
    if node.types[0] == node.types[1]:
        return [ct if to_x else None, -ct if to_y else None]
    x_type, y_type = node.types
    return [converted_cotangent(ct, x_type) if to_x else None, converted_cotangent(-ct, y_type) if to_y else None]


def _neg_kernel(np: Any, attrs: Any, operands: ValueTypes, results: ValueTypes) -> Kernel:
    if isinstance(operands[0], types.TensorType):
        return families.numpy_function("negative")(np, attrs, operands, results)  # type: ignore[arg-type]
    return _fieldwise(np.negative)


def _fieldwise(function: Kernel) -> Kernel:
    """A function of arrays as one of records of them, in which None stays zero."""

    def apply(x: Any) -> Any:
        return None if x is None else tuple(map(apply, x)) if isinstance(x, tuple) else function(x)

    return apply


def _of_pairs(function: Kernel, of_second: Kernel) -> Kernel:
    """A function of two arrays as one of records of them; and what it is of a field that is structurally zero and another."""

    def apply(x: Any, y: Any) -> Any:
        if x is None or y is None:
            return x if y is None else of_second(y)
        return tuple(map(apply, x, y)) if isinstance(x, tuple) else function(x, y)

    return apply


def add_kernel(np: Any, attrs: Any, operands: ValueTypes, results: ValueTypes) -> Kernel:
    """The kernel of add."""
    if any(t != results[0] for t in operands):
        return joining_kernel(np, add_kernel(np, attrs, results * 2, results), operands, results[0])
    if isinstance(operands[0], types.TensorType):
        return families.numpy_function("add")(np, attrs, operands, results)  # type: ignore[arg-type]
    return _of_pairs(np.add, lambda y: y)


def _add_jvp(node: JVP) -> Sequence[Term | None]:
    """The sum of the tangents, in the natural type of the result."""
    natural = types.tangent_type(node.results[0].value_type)
    return [families.summed([t and converted(t, natural) for t in node.tangents])]


def _add_transpose(node: Transposition) -> Sequence[Term | None]:
    """The cotangent for both, in the type of each."""
    ct = node.cotangent
    if node.types[0] == node.types[1]:
        return [ct if a else None for a in node.active]
    return [converted_cotangent(ct, t) if a else None for a, t in zip(node.active, node.types, strict=True)]


def _mul_types(attrs: Any, operands: ValueTypes) -> ValueTypes:
    scaled = scaled_operand(operands)
    if scaled is not None:
        return (operands[scaled],)
    for k, t in enumerate(operands):
        if isinstance(t, types.RecordType):
            raise TypeRuleError(f"input {k} is a record, {t}; a single number scales one, of tangents: all its fields are floats")
    return families.of_one_type(types.NUMERIC)(attrs, operands)  # type: ignore[arg-type]


def _mul_kernel(np: Any, attrs: Any, operands: ValueTypes, results: ValueTypes) -> Kernel:
    if scaled_operand(operands) is None:
        return families.numpy_function("multiply")(np, attrs, operands, results)  # type: ignore[arg-type]
    scale = _scaling(np, results[0], np.multiply)
    return scale if operands[0] == results[0] else lambda x, y: scale(y, x)


def _div_types(attrs: Any, operands: ValueTypes) -> ValueTypes:
    if scaled_operand(operands) == 0 and (isinstance(operands[1], types.TensorType) and operands[1].dtype in types.FLOATS):
        return (operands[0],)
    for k, t in enumerate(operands):
        if isinstance(t, types.RecordType):
            raise TypeRuleError(f"input {k} is a record, {t}; a single float divides one, of tangents: all its fields are floats")
    return families.of_one_type(types.NUMERIC)(attrs, operands)  # type: ignore[arg-type]


def _div_kernel(np: Any, attrs: Any, operands: ValueTypes, results: ValueTypes) -> Kernel:
    if scaled_operand(operands) is not None:
        return _scaling(np, results[0], np.divide)
    return families.numpy_function("divide", types.INTEGERS, _truncating_quotient)(np, attrs, operands, results)  # type: ignore[arg-type]


def _truncating_quotient(np: Any, x: Any, y: Any) -> Any:
    # As XLA: rounds towards zero, and x / 0 has all bits set.
    zero = np.equal(y, 0)
    y = np.where(zero, np.ones_like(y), y)
    quotient = np.floor_divide(x, y)
    inexact = np.multiply(quotient, y) != x
    quotient = np.where(inexact & ((x < 0) != (y < 0)), quotient + np.ones_like(y), quotient)
    return np.where(zero, np.invert(np.zeros_like(y)), quotient)


def quotient_transpose(name: str) -> TransposeRule:
    """The transpose rule of a quotient: the same of the cotangent."""
    divide = op(name)

    def transpose(node: Transposition) -> Sequence[Term | None]:
        _, divisor = node.operands
        if divisor is None:
            raise MissingRuleError(f"missing transpose rule for {name} with an active divisor: it is not linear in it")
        return [divide(node.cotangent, families.conj(divisor)), None]

    return transpose


def _scaling_batch(name: str) -> BatchRule:
    scale = op(name)

    def batch(node: Batching) -> Sequence[Term]:
        k = scaled_operand(node.types)
        if k is None or not isinstance(node.types[k], types.RecordType):
            return itself(name)(node)
        vector, number = stacked(node, k), stacked(node, 1 - k)

        def scaled(x: Term) -> Term:  # field by field, as each item has its number
            if isinstance(x.value_type, types.RecordType):
                return fieldwise(x.value_type, lambda name, _: scaled(field(x, name)))
            return scale(x, spread(convert(number, new_dtype=_number_dtype(x.type)), x.type.shape))

        return [scaled(vector)]

    return batch


def _mul_adjoint(node: Transposition, active: int, other: Term, ct: Term) -> Term:
    scaled = scaled_operand(node.types)
    if scaled is None:
        return families.conj(other) * ct
    return other * ct if active == scaled else _inner(other, ct, node.types[active].dtype)


# Vectors that are no arrays of numbers.


def _scaling(np: Any, type_: types.Type, function: Kernel) -> Kernel:
    """The kernel of a product, or a quotient, of a vector and a number."""
    if isinstance(type_, types.RecordType):
        parts = [_scaling(np, field_type, function) for _, field_type in type_.fields]
        return lambda x, c: tuple(None if v is None else part(v, c) for v, part in zip(x, parts, strict=True))
    dtype = numpy_dtype(np, type_.dtype)
    return lambda x, c: function(x, np.asarray(c).astype(dtype))


def _inner(x: Term, ct: Term, dtype: str) -> Term:
    """The product of two vectors, as the number that scaled one of them: of durations one for each element."""
    type_ = x.value_type
    if isinstance(type_, types.TensorType):
        return convert(x, new_dtype=dtype) * convert(ct, new_dtype=dtype)
    terms = [_sum_of_products(reduce(field, path, x), reduce(field, path, ct), dtype) for path, _ in types.leaves(type_)]
    return reduce(add, terms)


def _sum_of_products(x: Term, ct: Term, dtype: str) -> Term:
    if x.type.complex:
        product = real(families.conj(x) * ct)
    else:
        counted = _number_dtype(x.type)
        product = convert(x, new_dtype=counted) * convert(ct, new_dtype=counted)
    return convert(reduce_sum(product, axes=tuple(range(product.type.rank))) if product.type.rank else product, new_dtype=dtype)


def _number_dtype(type_: types.TensorType) -> str:
    """The dtype of the numbers that scale arrays of a type."""
    return "f64" if type_.dtype in types.DURATIONS else type_.dtype


JOINED = (
    Example(("duration[h][2]", "duration[ms][2]")),
    Example(("{instant: {periods: f64[2]}}", "duration[ms][2]")),
    Example(("{x: f64[], t: duration[s][2]}", "{x: f64[], t: duration[h][2]}")),
)
"""Sums of different types."""

ADD = families.elementwise(
    "add",
    2,
    ADDABLE,
    _add_jvp,
    transpose=_add_transpose,
    types=add_types,  # type: ignore[arg-type]
    kernel=add_kernel,
    batch=joining_batch("add"),
    records=True,
    joins=True,
    more=JOINED,
    fresh=True,
    linear=TOGETHER,
    formula="x + y",
    summary="sum; of records of one type, field by field; of tangents of one thing, in the natural type, whichever they have",
)

SUB = families.elementwise(
    "sub",
    2,
    types.NUMERIC | types.TIMES,
    _sub_jvp,
    transpose=_sub_transpose,
    types=_sub_types,  # type: ignore[arg-type]
    kernel=_sub_kernel,
    batch=joining_batch("sub"),
    records=True,
    joins=True,
    more=(Example(("duration[h][2]", "duration[ms][2]")), Example(("{x: f64[], t: duration[s][2]}",) * 2)),
    fresh=True,
    linear=TOGETHER,
    formula="x - y",
    summary="difference; of datetimes, the duration between them; of tangents of one thing, as `add`",
)

NEG = families.unary(
    "neg",
    ADDABLE,
    "-x",
    "negation; of records, field by field",
    adjoint=lambda node, ct, type_: -ct,
    types=add_types,
    kernel=_neg_kernel,
    records=True,
    more=(Example(("{x: f64[2], t: duration[s][]}",)),),
)

DIV = families.binary(
    "div",
    types.NUMERIC,
    "x / y",
    "quotient; of integers, rounded towards zero; of durations by floats, and of a record of tangents by one float",
    types=_div_types,
    kernel=_div_kernel,
    batch=_scaling_batch("div"),
    tangents=(lambda t, x, y, z: t / y, lambda t, x, y, z: -(z / y) * t),
    transpose=quotient_transpose("div"),
    strong=strong_quotient,
    integers="steps",
    records=True,
    kinks=lambda k: [k.Kink(k.at(0, operand=1), "divisor is 0", "infinite or NaN")],
    within=((-2.0, 2.0), (0.5, 2.0)),
    more=(
        Example(("duration[h][2]", "f64[2]"), within=((-2.0, 2.0), (0.5, 2.0))),
        Example(("{x: f64[2], t: duration[s][]}", "f64[]"), within=((-2.0, 2.0), (0.5, 2.0))),
    ),
    linear=((0, 1),),
    flops=per_element(dividing),
)

MUL = families.bilinear(
    "mul",
    _mul_types,  # type: ignore[arg-type]
    _mul_kernel,
    _mul_adjoint,
    batch=_scaling_batch("mul"),
    dtypes=types.NUMERIC,
    one_type=True,
    fresh=True,
    records=True,
    sparsity="elements",
    examples=(
        *families.elementwise_examples(2),
        Example(("f64[2]", "duration[h][2]")),
        Example(("duration[ms][]", "f64[]")),
        Example(("f32[2]", "duration[h][2]")),
        Example(("i32[]", "{x: f64[2], d: duration[s][]}")),
        Example(("f64[]", "{x: f64[2], w: (duration[s][], c128[2])}")),
        Example(("{x: f32[2], y: f64[]}", "f32[]")),
    ),
    flops=per_element(multiplying),
    strong=strong_product,
    formula="x y",
    summary="product; of durations with numbers, and of a record of tangents with one number",
)
