"""Arithmetic: add, sub, mul, div, neg, powers, extrema, abs and sign; products and quotients with strong zeros.

Strong zeros stay zeros, whatever the slope that multiplies or divides them. The cotangent of a branch that was not taken is 0, and
its slope may be infinite or NaN: the product is to be 0. What is not NaN has the bits of mul and div, zeros with their signs, too.
Linear in the operand whose zeros are strong, these primitives stand for linear nodes of mul and div where `transpose` has strong
zeros (as Enzyme calls them).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.types import FLOATS, INEXACT, INTEGERS, NUMERIC
from tidu_cli.lax.arrays.dtypes import ORDERED, in_order, numpy_dtype
from tidu_cli.lax.records.sums_and_products import ADD, DIV, MUL, NEG, SUB, quotient_transpose
from tidu_cli.rules import families
from tidu_cli.rules.analysis import dividing, multiplying, per_element, per_power
from tidu_cli.rules.batching import itself
from tidu_cli.rules.contract import JVP, Attrs, Example, Kernel, Primitive, Transposition, Types
from tidu_cli.rules.fields import Bounded
from tidu_cli.rules.terms import Term, op

_abs, convert, eq, integer_pow, log, power, real, select_n, sign, strong_div, strong_mul = map(
    op, ("abs", "convert_element_type", "eq", "integer_pow", "log", "pow", "real", "select_n", "sign", "strong_div", "strong_mul")
)


class IntegerPowAttrs(Attrs):
    """`y`: the exponent."""

    y: Annotated[int, Bounded(ge=-(2**31), lt=2**31)]


def _integer_pow_types(attrs: IntegerPowAttrs, operands: Types) -> Types:
    families.require_dtype(NUMERIC, operands)
    if attrs.y < 0 and operands[0].dtype in INTEGERS:
        raise TypeRuleError(f"input 0 has type {operands[0]}, and integers have no power {attrs.y}")
    return operands


def _integer_pow_kernel(np: Any, attrs: IntegerPowAttrs, operands: Types, results: Types) -> Kernel:
    simple = {1: np.positive, 2: np.square, -1: np.reciprocal}
    if attrs.y == 2 and operands[0].complex:
        return lambda x: np.multiply(x, x)  # NumPy rounds the square of one of its scalars otherwise than that of an array
    if attrs.y in simple:
        kernel: Kernel = simple[attrs.y]
        return kernel
    dtype = numpy_dtype(np, operands[0].dtype)
    if operands[0].dtype in INTEGERS:
        # In 64 bits, which hold every exponent; what is past the operand's bits drops out as it wraps.
        wide = np.uint64 if dtype.kind == "u" else np.int64
        return lambda x: np.power(x.astype(wide), wide(attrs.y)).astype(dtype)
    exponent = np.asarray(attrs.y).astype(dtype)
    if complex(exponent) == attrs.y:
        return lambda x: np.power(x, exponent)
    # Rounding the exponent would lose its parity, and with it the sign.
    wide = np.complex128 if operands[0].complex else np.float64
    return lambda x: np.power(x.astype(wide), wide(attrs.y)).astype(dtype)


def _integer_pow_jvp(node: JVP) -> Sequence[Term | None]:
    (x,), t, n = node.operands, node.tangent, node.attrs.y
    if n == 0:
        return [None]
    if n == 1:
        return [t]
    return [x * float(n) * t if n == 2 else integer_pow(x, y=n - 1) * float(n) * t]


def _pow_types(attrs: Any, operands: Types) -> Types:
    base, exponent = operands
    families.require_dtype(INEXACT, (base,))
    if exponent != base and (exponent.dtype not in INTEGERS or exponent.shape != base.shape):
        raise TypeRuleError(f"the exponent is {exponent}; it must be {base}, or integers of the same shape")
    return (base,)


def _pow_kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
    if operands[0] == operands[1]:
        return np.power if operands[0].complex else partial(_elementwise_power, np)
    # In double precision: a rounded exponent would lose its parity, and with it the sign.
    wide, dtype = np.complex128 if operands[0].complex else np.float64, numpy_dtype(np, operands[0].dtype)
    return lambda x, y: np.power(x.astype(wide), y.astype(wide)).astype(dtype)


def _elementwise_power(np: Any, x: Any, y: Any) -> Any:
    """NumPy's power without its shortcuts for some exponents that are one number in memory, which round otherwise."""
    if np.size(y) == 1:
        twice = np.power(np.repeat(x, 2), np.repeat(y, 2))
        return twice[0] if not np.ndim(y) else twice[:1].reshape(np.shape(y))
    return np.power(x, np.ascontiguousarray(y))


def _pow_jvp(node: JVP) -> Sequence[Term | None]:
    # x**0 is 1 at every x, and so y x**(y-1) is taken as 0 where y is 0 and x is 0 or NaN: it would be 0 inf, or NaN. Elsewhere
    # the formula stays, as its derivative by y, 1/x at y = 0, is needed. log x is taken as 0 where x is 0, as JAX does.
    (x, y), (z,), (tx, ty) = node.operands, node.results, node.tangents
    terms: list[Term | None] = []
    if tx is not None:
        exponent = families.as_dtype(y, x.type.dtype)
        straight = op("and")(eq(exponent, 0), op("or")(eq(x, 0), op("ne")(x, x)))
        lowered = select_n(straight, exponent - 1, 1)
        terms.append(select_n(straight, exponent * power(x, lowered), 0) * tx)
    if ty is not None:
        ty = families.as_dtype(ty, x.type.dtype)  # where the exponent is of integers
        terms.append(log(select_n(eq(x, 0), x, 1)) * z * ty)
    return [families.summed(terms)]


def _share(t: Term, x: Term, y: Term, z: Term) -> Term:
    """What x's tangent t is in z = max(x, y): all of it where x is taken, half where x and y tie, none elsewhere."""
    return select_n(eq(x, z), 0, select_n(eq(x, y), t.trace.full(1, t.type), 0.5)) * t


def _extremum(name: str, function: str) -> Primitive:
    return families.elementwise(
        name,
        2,
        ORDERED,
        families.by_counts(families.by_partials(_share, lambda t, x, y, z: _share(t, y, x, z))),
        kernel=in_order(families.numpy_function(function)),
        integers="exact",
        formula=f"{name}(x, y)",
        summary=f"{function}; NaN wins",
        kinks=lambda k: [
            k.Kink(k.tie, "operands tie", "half each", "half each; relu 0", "half each; relu 0", "equal shares; Relu 0")
        ],
    )


def _abs_tangent(t: Term, x: Term, y: Term) -> Term:
    if not x.type.complex:
        return sign(x) * t
    # d|z| = Re(conj(z) dz) / |z|; at 0 it is taken as 0.
    return real(families.conj(x) * t) / select_n(eq(y, 0), y, 1)


def _sign_jvp(node: JVP) -> Sequence[Term | None]:
    (z,), (s,), (t,) = node.operands, node.results, node.tangents
    if t is None or not z.type.complex:
        return [None]
    # s = z / |z|, so ds = (dz - s Re(conj(s) dz)) / |z|.
    magnitude = _abs(z)
    radial = convert(real(families.conj(s) * t), new_dtype=z.type.dtype)
    divisor = convert(select_n(eq(magnitude, 0), magnitude, 1), new_dtype=z.type.dtype)
    return [(t - s * radial) / divisor]


def _is_steep(np: Any, attrs: Any, operands: Any, results: Any) -> Any:
    return (operands[0] == 0) & (operands[1] < 1) & (operands[1] != 0)


_POSITIVE = ((0.5, 2.0),)


def _kept(np: Any, x: Any, result: Any) -> Any:
    """The result, but for 0 where it is NaN and x is 0."""
    return np.where((x == 0) & (result != result), result.dtype.type(0), result)


def _mul_adjoint(node: Transposition, active: int, other: Term, ct: Term) -> Term:
    # In x it is 0 where y is 0: the factor of ct is then 0, and strong.
    return strong_mul(families.conj(other), ct if active == 1 else select_n(eq(other, 0), ct, 0))


PRIMITIVES = (
    ADD,
    SUB,
    MUL,
    DIV,
    NEG,
    families.primitive(
        "integer_pow",
        1,
        _integer_pow_types,
        _integer_pow_kernel,
        jvp=_integer_pow_jvp,
        batch=itself("integer_pow"),
        attrs=IntegerPowAttrs,
        dtypes=NUMERIC,
        examples=(*(Example(("T[2,3]",), {"y": y}, _POSITIVE) for y in (3, 2, 1, 0)), Example(("f64[]",), {"y": -2}, _POSITIVE)),
        one_type=True,
        flops=per_power(lambda attrs: attrs.y),
        formula="x^y",
        summary="power with a fixed integer exponent",
    ),
    families.primitive(
        "pow",
        2,
        _pow_types,
        _pow_kernel,
        jvp=_pow_jvp,
        batch=itself("pow"),
        dtypes=INEXACT,
        examples=(Example(("T[]", "T[]"), {}, _POSITIVE), Example(("T[3]", "T[3]"), {}, _POSITIVE), Example(("T[3]", "i32[3]"))),
        integers="exact",
        formula="x^y",
        summary="power; y may be of integers",
        kinks=lambda k: [
            k.Kink(k.origin, "base and exponent are 0", "0", jax="NaN", onnx=""),
            k.Kink(_is_steep, "base is 0, exponent below 1", "infinite", onnx=""),
        ],
    ),
    _extremum("max", "maximum"),
    _extremum("min", "minimum"),
    families.unary(
        "abs",
        NUMERIC,
        "|x|",
        "magnitude",
        tangent=_abs_tangent,
        kernel="absolute",
        result=families.real_of,
        kinks=lambda k: [k.Kink(k.at(0), "operand is 0", "0", jax="1; of complex numbers 0")],
    ),
    families.elementwise(
        "sign",
        1,
        NUMERIC,
        _sign_jvp,
        kernel=families.numpy_function("sign", FLOATS, lambda np, x: np.copysign(np.sign(x), x)),  # as StableHLO: of -0 it is -0
        formula="x / |x|",
        summary="sign; 0 at 0",
        kinks=lambda k: [k.Kink(k.at(0), "operand is 0", "0", onnx="")],
    ),
    families.bilinear(
        "strong_mul",
        families.of_one_type(INEXACT),
        families.computed(lambda np, x, y: _kept(np, y, np.multiply(x, y))),
        _mul_adjoint,
        batch=itself("strong_mul"),
        dtypes=INEXACT,
        one_type=True,
        fresh=True,
        sparsity="elements",
        examples=families.elementwise_examples(2),
        flops=per_element(multiplying),
        formula="x y; 0 where y is 0",
        summary="product; 0 where y is 0, also if x is infinite or NaN",
    ),
    families.binary(
        "strong_div",
        INEXACT,
        "x / y; 0 where x is 0",
        "quotient; 0 where x is 0, also if y is 0 or NaN",
        kernel=families.computed(lambda np, x, y: _kept(np, x, np.divide(x, y))),
        tangents=(lambda t, x, y, z: strong_div(t, y), lambda t, x, y, z: -strong_mul(t, strong_div(z, y))),
        transpose=quotient_transpose("strong_div"),
        within=((-2.0, 2.0), (0.5, 2.0)),
        linear=((0, 1),),
        flops=per_element(dividing),
    ),
)
