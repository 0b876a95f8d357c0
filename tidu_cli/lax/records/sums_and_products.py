"""Sums and products: of arrays of numbers, and of vectors, which are durations and records of tangents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.types import DURATIONS, NUMERIC, RecordType, TensorType, leaves, tangent_type
from tidu_cli.rules.batching import itself
from tidu_cli.rules.contract import JVP, TOGETHER, Batching, Example, Kernel, Transposition, ValueTypes
from tidu_cli.rules.families import bilinear, conj, elementwise, elementwise_examples, numpy_function, of_one_type, summed
from tidu_cli.rules.flops import multiplying, per_element
from tidu_cli.rules.tangents.conversion import converted, converted_cotangent
from tidu_cli.rules.tangents.types import scaled_operand
from tidu_cli.rules.terms import Term

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
        from tidu_cli.lax.records.vectors import joining_kernel  # here and below, as vectors are rare

        return joining_kernel(np, _add_kernel(np, attrs, results * 2, results), operands, results[0])
    if isinstance(operands[0], TensorType):
        return numpy_function("add")(np, attrs, operands, results)  # type: ignore[arg-type]

    def fieldwise(x: Any, y: Any) -> Any:
        if x is None or y is None:  # a field that is structurally zero
            return x if y is None else y
        return tuple(map(fieldwise, x, y)) if isinstance(x, tuple) else np.add(x, y)

    return fieldwise


def _add_jvp(node: JVP) -> Sequence[Term | None]:
    """The sum of the tangents, in the natural type of the result."""
    natural = tangent_type(node.results[0].value_type)
    return [summed([t and converted(t, natural) for t in node.tangents])]


def _adding_kernel(np: Any, attrs: Any, operands: ValueTypes, results: ValueTypes) -> Kernel:
    """The kernel of add that writes into operand 0, if that is an array."""
    if not isinstance(operands[0], TensorType) or operands[0] != operands[1]:
        return _add_kernel(np, attrs, operands, results)
    return lambda x, y: np.add(x, y, out=x)


def _add_transpose(node: Transposition) -> Sequence[Term | None]:
    """The cotangent for both, in the type of each."""
    ct = node.cotangent
    if node.types[0] == node.types[1]:
        return [ct if a else None for a in node.active]
    return [converted_cotangent(ct, t) if a else None for a, t in zip(node.active, node.types, strict=True)]


def _add_batch(node: Batching) -> Sequence[Term]:
    if node.types[0] == node.types[1]:
        return itself("add")(node)
    from tidu_cli.lax.records.vectors import joining_batch

    return joining_batch(node)


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
    reusing=_adding_kernel,
    linear=TOGETHER,
    formula="x + y",
    summary="sum; of records of one type, field by field; of tangents of one thing, in the natural type, whichever they have",
)


def _mul_types(attrs: Any, operands: ValueTypes) -> ValueTypes:
    scaled = scaled_operand(operands)
    if scaled is not None:
        return (operands[scaled],)
    for k, t in enumerate(operands):
        if isinstance(t, RecordType):
            raise TypeRuleError(f"input {k} is a record, {t}; a single float scales one, of tangents: all its fields are floats")
    return of_one_type(NUMERIC)(attrs, operands)  # type: ignore[arg-type]


def _mul_kernel(np: Any, attrs: Any, operands: ValueTypes, results: ValueTypes) -> Kernel:
    if isinstance(results[0], RecordType):
        from tidu_cli.lax.records.vectors import scaling_kernel

        return scaling_kernel(np, operands)
    return numpy_function("multiply")(np, attrs, operands, results)  # type: ignore[arg-type]


def _mul_batch(node: Batching) -> Sequence[Term]:
    if not any(isinstance(t, RecordType) for t in node.types):
        return itself("mul")(node)
    from tidu_cli.lax.records.vectors import scaling_batch

    return scaling_batch(node)


def _mul_adjoint(node: Transposition, active: int, other: Term, ct: Term) -> Term:
    if scaled_operand(node.types) is None:
        return conj(other) * ct
    from tidu_cli.lax.records.vectors import scaling_adjoint

    return scaling_adjoint(node.types, active, other, ct)


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
