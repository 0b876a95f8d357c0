"""Bitwise operations: logic on bools and on the bits of integers, shifts, and counting bits.

As in XLA, a shift by as many bits as there are, or more, moves all of them out; a negative amount counts as such.
"""

from __future__ import annotations

from typing import Any

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.types import INTEGERS, ITEMSIZE, REALS, SIGNED
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.rules.attrs.attrs import DTypeName
from tidu_cli.rules.batching import itself
from tidu_cli.rules.contract import Attrs, Example, Kernel, Primitive, Types
from tidu_cli.rules.families import binary, computed, no_tangent, numpy_function, primitive, unary
from tidu_cli.rules.flops import free

_LOGICAL = INTEGERS | {"bool"}


def _as_unsigned(x: Any) -> Any:
    return x.view(f"u{x.dtype.itemsize}")


def _shift_right_arithmetic(np: Any, x: Any, y: Any) -> Any:
    # The highest bit counts as the sign also of unsigned integers.
    signed, most = f"i{x.dtype.itemsize}", x.dtype.type(8 * x.dtype.itemsize - 1)
    return np.right_shift(x.view(signed), np.minimum(y, most).view(signed)).view(x.dtype)


def _population_count(np: Any, x: Any) -> Any:
    return np.bitwise_count(_as_unsigned(x)).astype(x.dtype)


def _leading_zeros(np: Any, x: Any) -> Any:
    # The highest 1 is smeared over all lower bits, and what remains is counted.
    smeared, reach = _as_unsigned(x), 1
    while reach < 8 * x.dtype.itemsize:
        smeared, reach = smeared | (smeared >> smeared.dtype.type(reach)), 2 * reach
    return np.bitwise_count(~smeared).astype(x.dtype)


class BitcastAttrs(Attrs):
    """`new_dtype`: the dtype of the result, of integers or floats. A narrower one makes a last axis of parts, lowest bits first;
    a wider one takes that axis. It is another one than the operand's.
    """

    new_dtype: DTypeName


def _bitcast_types(attrs: BitcastAttrs, operands: Types) -> Types:
    (x,), new = operands, attrs.new_dtype
    if new not in REALS:
        raise TypeRuleError(f"new_dtype {new}: bits are those of integers and floats")
    if x.dtype not in REALS:
        raise TypeRuleError(f"the operand is {x}, and bits are those of integers and floats; convert it first")
    if new == x.dtype:
        raise TypeRuleError(f"the operand {x} is of new_dtype {new}; leave the conversion out")
    old_size, new_size = ITEMSIZE[x.dtype], ITEMSIZE[new]
    shape = x.shape
    if new_size < old_size:
        shape = (*shape, old_size // new_size)
    elif new_size > old_size:
        if shape[-1:] != (new_size // old_size,):
            raise TypeRuleError(f"the operand {x} has no last axis of {new_size // old_size} parts of {new}")
        shape = shape[:-1]
    return (x.with_dtype(new).with_shape(shape),)


def _bitcast_kernel(np: Any, attrs: BitcastAttrs, operands: Types, results: Types) -> Kernel:
    dtype, shape = numpy_dtype(np, attrs.new_dtype), results[0].shape
    if operands[0].shape == shape:
        return lambda x: np.asarray(x).view(dtype)
    little, old = dtype.newbyteorder("<"), numpy_dtype(np, operands[0].dtype).newbyteorder("<")

    def bits(x: Any) -> Any:
        # Through bytes, as an array without axes has no view of another size.
        data = np.asarray(x).astype(old, copy=False).tobytes()
        return np.frombuffer(data, little).astype(dtype).reshape(shape)

    return bits


def _logic(name: str, function: str, symbol: str) -> Primitive:
    return binary(name, _LOGICAL, f"x {symbol} y", f"{name}, of integers bit by bit", kernel=function)


PRIMITIVES = (
    unary("not", _LOGICAL, "¬x", "not, of integers bit by bit", kernel="invert"),
    _logic("and", "bitwise_and", "∧"),
    _logic("or", "bitwise_or", "∨"),
    _logic("xor", "bitwise_xor", "⊻"),
    binary("shift_left", INTEGERS, "x · 2^y", "shift to the left; zeros come in", kernel="left_shift", within=((0, 8),)),
    binary(
        "shift_right_logical",
        INTEGERS,
        "⌊x / 2^y⌋, x as unsigned",
        "shift to the right; zeros come in",
        kernel=computed(lambda np, x, y: np.right_shift(_as_unsigned(x), _as_unsigned(y)).view(x.dtype)),
        within=((0, 8),),
    ),
    binary(
        "shift_right_arithmetic",
        INTEGERS,
        "⌊x / 2^y⌋, x as signed",
        "shift to the right; copies of the sign bit come in",
        kernel=numpy_function("right_shift", INTEGERS - SIGNED, _shift_right_arithmetic),
        within=((0, 8),),
    ),
    unary("population_count", INTEGERS, "|x|₁", "number of bits set", kernel=computed(_population_count)),
    unary("clz", INTEGERS, "bits above the highest bit set", "count of leading zeros", kernel=computed(_leading_zeros)),
    primitive(
        "bitcast_convert_type",
        1,
        _bitcast_types,
        _bitcast_kernel,
        opaque="reads the bits of numbers",
        jvp=no_tangent,
        batch=itself("bitcast_convert_type"),
        attrs=BitcastAttrs,
        dtypes=REALS,
        examples=(
            Example(("f64[2,3]",), {"new_dtype": "i64"}),
            Example(("f32[2]",), {"new_dtype": "u8"}),
            Example(("u16[3,2]",), {"new_dtype": "f32"}),
        ),
        flops=free,
        formula="the bits of x as new_dtype",
        summary="the same bits as another dtype; it has no derivative",
        caption=("{0} as bits", "its bits as {new_dtype}"),
    ),
)
