"""Sums and products: of arrays of numbers, and of vectors that are none: durations, and records of tangents.

A number scales them: one for each element of durations, a single one for all of a record. Tangents of one thing add up whichever
types they have, for what is added are natural ones (`tidu_cli.rules.tangents.types.joined`): here operands become those.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.graph import CaseTable, Input
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import DURATIONS, NUMERIC, RecordType, TensorType, Type, leaves, of_batch, tangent_type
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.rules.batching import itself, spread, stacked
from tidu_cli.rules.contract import JVP, TOGETHER, Batching, Example, Kernel, Transposition, ValueTypes
from tidu_cli.rules.families import bilinear, conj, elementwise, elementwise_examples, numpy_function, of_one_type, summed
from tidu_cli.rules.flops import multiplying, per_element
from tidu_cli.rules.recording.records import field, fieldwise
from tidu_cli.rules.recording.trace import Trace
from tidu_cli.rules.tangents.conversion import converted, converted_cotangent
from tidu_cli.rules.tangents.types import scaled_operand
from tidu_cli.rules.terms import Term, op

convert, real, reduce_sum = op("convert_element_type"), op("real"), op("reduce_sum")

ADDABLE = NUMERIC | DURATIONS
"""The dtypes that have sums."""


def _add_types(attrs: Any, operands: ValueTypes) -> ValueTypes:
    record = next((t for t in operands if isinstance(t, RecordType)), None)
    if record is None:
        return of_one_type(ADDABLE)(attrs, operands)  # type: ignore[arg-type]
    for k, t in enumerate(operands):
        if t != operands[0]:
            raise TypeRuleError(f"type mismatch: input 0 is {operands[0]}, input {k} is {t}; only records of one type add up")
    for path, leaf in leaves(record):
        if leaf.dtype not in ADDABLE:
            raise TypeRuleError(f"inputs are of type {record}, whose field '{'.'.join(path)}' is {leaf}, which has no sum")
    return (record,)


def _add_kernel(np: Any, attrs: Any, operands: ValueTypes, results: ValueTypes) -> Kernel:
    if any(t != results[0] for t in operands):
        return _joining_kernel(np, _add_kernel(np, attrs, results * 2, results), operands, results[0])
    if isinstance(operands[0], TensorType):
        return numpy_function("add")(np, attrs, operands, results)  # type: ignore[arg-type]

    def added(x: Any, y: Any) -> Any:
        if x is None or y is None:  # a field that is structurally zero
            return x if y is None else y
        return tuple(map(added, x, y)) if isinstance(x, tuple) else np.add(x, y)

    return added


def _add_jvp(node: JVP) -> Sequence[Term | None]:
    """The sum of the tangents, in the natural type of the result."""
    natural = tangent_type(node.results[0].value_type)
    return [summed([t and converted(t, natural) for t in node.tangents])]


def _add_transpose(node: Transposition) -> Sequence[Term | None]:
    """The cotangent for both, in the type of each."""
    ct = node.cotangent
    if node.types[0] == node.types[1]:
        return [ct if a else None for a in node.active]
    return [converted_cotangent(ct, t) if a else None for a, t in zip(node.active, node.types, strict=True)]


def _add_batch(node: Batching) -> Sequence[Term]:
    if node.types[0] == node.types[1]:
        return itself("add")(node)
    (result,) = node.operands[0].trace.primitives.case("add", node.attrs, None, node.types).results
    x, y = (converted(stacked(node, k), of_batch(result, node.size)) for k in range(2))
    return [x + y]


def _mul_types(attrs: Any, operands: ValueTypes) -> ValueTypes:
    scaled = scaled_operand(operands)
    if scaled is not None:
        return (operands[scaled],)
    for k, t in enumerate(operands):
        if isinstance(t, RecordType):
            raise TypeRuleError(f"input {k} is a record, {t}; a single float scales one, of tangents: all its fields are floats")
    return of_one_type(NUMERIC)(attrs, operands)  # type: ignore[arg-type]


def _mul_kernel(np: Any, attrs: Any, operands: ValueTypes, results: ValueTypes) -> Kernel:
    if not isinstance(results[0], RecordType):
        return numpy_function("multiply")(np, attrs, operands, results)  # type: ignore[arg-type]
    scale = _scaling(np, results[0])
    return scale if operands[0] == results[0] else lambda x, y: scale(y, x)


def _mul_batch(node: Batching) -> Sequence[Term]:
    k = scaled_operand(node.types)
    if k is None or not isinstance(node.types[k], RecordType):
        return itself("mul")(node)
    vector, number = stacked(node, k), stacked(node, 1 - k)

    def scaled(x: Term) -> Term:  # field by field, as each item has its number
        if isinstance(x.value_type, RecordType):
            return fieldwise(x.value_type, lambda name, _: scaled(field(x, name)))
        return x * spread(convert(number, new_dtype=_number_dtype(x.type)), x.type.shape)

    return [scaled(vector)]


def _mul_adjoint(node: Transposition, active: int, other: Term, ct: Term) -> Term:
    scaled = scaled_operand(node.types)
    if scaled is None:
        return conj(other) * ct
    return other * ct if active == scaled else _inner(other, ct, node.types[active].dtype)


# Vectors that are no arrays of numbers.


def _joining_kernel(np: Any, add: Kernel, operands: ValueTypes, result: Type) -> Kernel:
    """The kernel that adds tangents of different types, by converting them first."""
    from tidu_cli.lax.builtin import BUILTIN  # which has this family
    from tidu_cli.rules.recording.functions import kernel
    from tidu_cli.rules.recording.graphs import as_output, recorded  # here, as vectors are rare

    def conversion(given: Type) -> Kernel:
        trace = Trace(BUILTIN, CaseTable())
        made = as_output("y", converted(trace.source(given, linear=False), result))
        return kernel(np, recorded(trace, "conversion", [Input(Key("x"), given)], [made]), BUILTIN)

    ready = [None if t == result else conversion(t) for t in operands]
    return lambda *values: add(*(x if made is None else made(x) for x, made in zip(values, ready, strict=True)))


def _scaling(np: Any, type_: Type) -> Kernel:
    """The kernel of a product of a vector and a number."""
    if isinstance(type_, RecordType):
        parts = [_scaling(np, field_type) for _, field_type in type_.fields]
        return lambda x, c: tuple(None if v is None else part(v, c) for v, part in zip(x, parts, strict=True))
    dtype = numpy_dtype(np, type_.dtype)
    return lambda x, c: np.multiply(x, np.asarray(c).astype(dtype))


def _inner(x: Term, ct: Term, dtype: str) -> Term:
    """The product of two vectors, as the number that scaled one of them: of durations one for each element."""
    type_ = x.value_type
    if isinstance(type_, TensorType):
        return convert(x, new_dtype=dtype) * convert(ct, new_dtype=dtype)
    terms = [_sum_of_products(reduce(field, path, x), reduce(field, path, ct), dtype) for path, _ in leaves(type_)]
    return reduce(add, terms)


def _sum_of_products(x: Term, ct: Term, dtype: str) -> Term:
    if x.type.complex:
        product = real(conj(x) * ct)
    else:
        counted = _number_dtype(x.type)
        product = convert(x, new_dtype=counted) * convert(ct, new_dtype=counted)
    return convert(reduce_sum(product, axes=tuple(range(product.type.rank))) if product.type.rank else product, new_dtype=dtype)


def _number_dtype(type_: TensorType) -> str:
    """The dtype of the numbers that scale arrays of a type."""
    return "f64" if type_.dtype in DURATIONS else type_.dtype


ADD = elementwise(
    "add",
    2,
    ADDABLE,
    _add_jvp,
    transpose=_add_transpose,
    types=_add_types,  # type: ignore[arg-type]
    kernel=_add_kernel,
    batch=_add_batch,
    records=True,
    joins=True,
    more=(
        Example(("duration[h][2]", "duration[ms][2]")),
        Example(("{instant: {periods: f64[2]}}", "duration[ms][2]")),
        Example(("{x: f64[], t: duration[s][2]}", "{x: f64[], t: duration[h][2]}")),
    ),
    fresh=True,
    linear=TOGETHER,
    formula="x + y",
    summary="sum; of records of one type, field by field; of tangents of one thing, in the natural type, whichever they have",
)

MUL = bilinear(
    "mul",
    _mul_types,  # type: ignore[arg-type]
    _mul_kernel,
    _mul_adjoint,
    batch=_mul_batch,
    dtypes=NUMERIC,
    one_type=True,
    fresh=True,
    records=True,
    examples=(
        *elementwise_examples(2),
        Example(("f64[2]", "duration[h][2]")),
        Example(("duration[ms][]", "f64[]")),
        Example(("f64[]", "{x: f64[2], w: (duration[s][], c128[2])}")),
        Example(("{x: f32[2], y: f64[]}", "f32[]")),
    ),
    flops=per_element(multiplying),
    formula="x y",
    summary="product; of durations with numbers, and of a record of tangents with one number",
)
