"""Elementwise equations that differ from operations of graphs in what they take, or are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidu_cli.adapters.jax.functions.equations.equation import Equation, spread
from tidu_cli.adapters.numpy.arrays.array import Array, dtype_of
from tidu_cli.graph.types import FLOATS

# fmt: off
SPREADING = frozenset({
    "add", "sub", "mul", "div", "max", "min", "pow", "rem", "atan2", "nextafter", "eq", "ne", "lt", "le", "gt", "ge",
    "and", "or", "xor", "zeta", "polygamma", "igamma", "igammac", "regularized_incomplete_beta", "complex",
    "shift_left", "shift_right_logical", "shift_right_arithmetic",
})
# fmt: on
"""Operations whose equations take scalars beside arrays."""


def renamed(op: str) -> Callable[..., Array]:
    """An equation that is an operation of another name."""

    def read(eq: Equation, *operands: Array) -> Array:
        shape = eq.results[0].shape
        return eq.emit(op, *[spread(x, shape) for x in operands])

    return read


def ordered(op: str) -> Callable[..., Array]:
    """A comparison by the total order of floats, where NaN comes last and equals itself. Zeros of either sign are equal here."""

    def read(eq: Equation, *operands: Array) -> Array:
        x, y = (spread(operand, eq.results[0].shape) for operand in operands)
        found = eq.emit(op, x, y)
        if x.type.dtype not in FLOATS:
            return found
        last = eq.emit("ne", y, y)
        if op != "le":
            last = eq.emit("and", last, eq.emit("eq" if op == "lt" else "ne", x, x))
        return eq.emit("or", found, last)

    return read


def select_n(eq: Equation, which: Array, *cases: Array) -> Array:
    """Cases by numbers of 32 bits."""
    if which.type.dtype not in ("bool", "i32"):
        which = which.convert("i32")
    return eq.emit("select_n", which, *cases)


def igamma_grad_a(eq: Equation, a: Array, x: Array) -> Array:
    """The derivative of igamma by its order."""
    return eq.emit("igamma_grad_a", a, x, order=1)


def mulhi(eq: Equation, x: Array, y: Array) -> Array:
    """The high half of a product of integers of at most 32 bits."""
    dtype = x.type.dtype
    bits = int(dtype[1:])
    if bits > 32:
        raise eq.refused("the high half of products of 64 bits is no operation of a graph")
    wide = f"{dtype[0]}64"
    product = eq.emit("mul", x.convert(wide), y.convert(wide))
    shift = spread(eq.constant(dtype_of(wide).type(bits)), product.type.shape)
    return eq.emit("shift_right_arithmetic" if dtype[0] == "i" else "shift_right_logical", product, shift).convert(dtype)


def of_bools(op: str, logical: str) -> Callable[..., Array]:
    """An operation of numbers whose equation takes bools, too."""

    def read(eq: Equation, *operands: Array) -> Array:
        shape = eq.results[0].shape
        name = logical if operands[0].type.dtype == "bool" else op
        return eq.emit(name, *[spread(x, shape) for x in operands])

    return read


def reduced_bools(op: str, logical: str) -> Callable[..., Array]:
    """Likewise, for a reduction."""
    return lambda eq, x: eq.emit(logical if x.type.dtype == "bool" else op, x, axes=tuple(map(int, eq.params["axes"])))


def bitcast(eq: Equation, x: Array) -> Array:
    """The bits of numbers as another dtype."""
    dtype = eq.results[0].dtype
    return x if dtype == x.type.dtype else eq.emit("bitcast_convert_type", x, new_dtype=dtype)


def convert(eq: Equation, x: Array) -> Array:
    """A conversion, which may be of weak types only."""
    dtype = eq.results[0].dtype
    return x if dtype == x.type.dtype else eq.emit("convert_element_type", x, new_dtype=dtype)


def conj(eq: Equation, x: Array) -> Array:
    """The conjugate, of a real number as a complex one."""
    return eq.emit("conj", x) if x.type.complex else x.convert(eq.results[0].dtype)


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "add_any": renamed("add"),
    "eq_to": ordered("eq"),
    "lt_to": ordered("lt"),
    "le_to": ordered("le"),
    "select_n": select_n,
    "igamma_grad_a": igamma_grad_a,
    "mulhi": mulhi,
    "max": of_bools("max", "or"),
    "min": of_bools("min", "and"),
    "mul": of_bools("mul", "and"),
    "add": of_bools("add", "or"),
    "reduce_max": reduced_bools("reduce_max", "reduce_or"),
    "reduce_min": reduced_bools("reduce_min", "reduce_and"),
    "bitcast_convert_type": bitcast,
    "convert_element_type": convert,
    "conj": conj,
}
