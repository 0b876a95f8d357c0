"""Arithmetic of vectors that are no arrays of numbers: durations, and records of tangents.

A number scales them: one for each element of durations, a single one for all of a record. Tangents of one thing add up whichever
types they have, for what is added are natural ones (`tidu_cli.rules.tangents.types.joined`): here operands become those.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

from tidu_cli.graph.graph import CaseTable, Input
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import DURATIONS, RecordType, TensorType, Type, leaves, of_batch
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.rules.batching import spread, stacked
from tidu_cli.rules.contract import Batching, Kernel, Types, ValueTypes
from tidu_cli.rules.recording.functions import kernel
from tidu_cli.rules.recording.graphs import as_output, recorded
from tidu_cli.rules.recording.records import field, fieldwise
from tidu_cli.rules.recording.trace import Trace
from tidu_cli.rules.tangents.conversion import converted
from tidu_cli.rules.tangents.types import scaled_operand
from tidu_cli.rules.terms import Term, op

convert, real, reduce_sum = op("convert_element_type"), op("real"), op("reduce_sum")


def scaling_kernel(np: Any, operands: ValueTypes) -> Kernel:
    """The kernel of a product of a record and a number."""
    k = scaled_operand(operands)
    assert k is not None
    scale = _scaling(np, operands[k])
    return scale if k == 0 else lambda x, y: scale(y, x)


def _scaling(np: Any, type_: Type) -> Kernel:
    if isinstance(type_, RecordType):
        parts = [_scaling(np, field_type) for _, field_type in type_.fields]
        return lambda x, c: tuple(None if v is None else part(v, c) for v, part in zip(x, parts, strict=True))
    dtype = numpy_dtype(np, type_.dtype)
    return lambda x, c: np.multiply(x, np.asarray(c).astype(dtype))


def scaling_batch(node: Batching) -> Sequence[Term]:
    """The batch rule of such a product: field by field, as each item has its number."""
    k = scaled_operand(node.types)
    assert k is not None
    vector, number = stacked(node, k), stacked(node, 1 - k)

    def scaled(x: Term) -> Term:
        if isinstance(x.value_type, RecordType):
            return fieldwise(x.value_type, lambda name, _: scaled(field(x, name)))
        return x * spread(convert(number, new_dtype=_number_dtype(x.type)), x.type.shape)

    return [scaled(vector)]


def scaling_adjoint(types: Types, active: int, other: Term, ct: Term) -> Term:
    """The cotangent of the active operand of a product of a vector and a number."""
    return other * ct if active == scaled_operand(types) else _inner(other, ct, types[active].dtype)


def _inner(x: Term, ct: Term, dtype: str) -> Term:
    """The product of two vectors, as the number that scaled one of them: of durations one for each element."""
    type_ = x.value_type
    if isinstance(type_, TensorType):
        return convert(x, new_dtype=dtype) * convert(ct, new_dtype=dtype)
    terms = [_sum_of_products(reduce(field, path, x), reduce(field, path, ct), dtype) for path, _ in leaves(type_)]
    return reduce(add, terms)


def _sum_of_products(x: Term, ct: Term, dtype: str) -> Term:
    if x.type.complex:
        product = real(op("conj")(x) * ct)
    else:
        counted = _number_dtype(x.type)
        product = convert(x, new_dtype=counted) * convert(ct, new_dtype=counted)
    return convert(reduce_sum(product, axes=tuple(range(product.type.rank))) if product.type.rank else product, new_dtype=dtype)


def _number_dtype(type_: TensorType) -> str:
    """The dtype of the numbers that scale arrays of a type."""
    return "f64" if type_.dtype in DURATIONS else type_.dtype


# Sums of tangents of different types.


def joining_kernel(np: Any, add: Kernel, operands: ValueTypes, result: Type) -> Kernel:
    """The kernel that adds tangents of different types, by converting them first."""
    from tidu_cli.lax.builtin import BUILTIN  # which has this family

    def conversion(given: Type) -> Kernel:
        trace = Trace(BUILTIN, CaseTable())
        made = as_output("y", converted(trace.source(given, linear=False), result))
        return kernel(np, recorded(trace, "conversion", [Input(Key("x"), given)], [made]), BUILTIN)

    ready = [None if t == result else conversion(t) for t in operands]
    return lambda *values: add(*(x if made is None else made(x) for x, made in zip(values, ready, strict=True)))


def joining_batch(node: Batching) -> Sequence[Term]:
    """The batch rule of a sum: of operands of one type, after conversion."""
    trace = node.operands[0].trace
    (result,) = trace.primitives.case("add", node.attrs, None, node.types).results
    x, y = (converted(stacked(node, k), of_batch(result, node.size)) for k in range(2))
    return [x + y]
