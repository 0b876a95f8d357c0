"""What `scipy.special` has beside ufuncs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import Operand, array_dtype, arrays_in, lift
from tidu_cli.adapters.numpy.errors import BuildError, UntraceableError
from tidu_cli.adapters.numpy.numpy.elementwise.special import all_of
from tidu_cli.adapters.numpy.numpy.elementwise.ufuncs import apply_ufunc
from tidu_cli.adapters.numpy.numpy.indexing import common_shape, filled, floating, reduce, select
from tidu_cli.adapters.numpy.numpy.reductions import reducing


def floats(*operands: Operand) -> list[Array]:
    """Operands as arrays of one shape and of the floats that SciPy computes them in: f64, unless all are of fewer bits."""
    dtype = array_dtype(*operands)
    like = arrays_in(operands)[0]
    wanted = dtype if dtype in (np.float32, np.float16) else np.dtype(np.float64)
    if dtype.kind == "c":
        raise BuildError("complex numbers have no counterpart in graphs here; take it of real numbers")
    arrays = [lift(x, like).convert(wanted) for x in operands]
    shape = common_shape(*[x.shape for x in arrays])
    return [x.broadcast(shape) for x in arrays]


def logsumexp(a: Operand, axis: Any = None, b: Operand = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    if b is None and not return_sign:
        x = lift(a, arrays_in([a])[0])
        return reducing.logsumexp(x, axis, keepdims)
    x, weight = floats(a, 1.0 if b is None else b)
    zero = weight.emit("eq", filled(weight, 0))
    top = reduce(select(zero, filled(x, -math.inf), x), "reduce_max", axis, True).emit("stop_gradient")
    top = select(top.emit("is_finite"), top, filled(top, 0))
    terms = weight * (select(zero, filled(x, 0), x) - top).emit("exp")
    total = reducing.sum(terms, axis, keepdims=True)
    sign = total.emit("sign")
    logarithm = (abs(total) if return_sign else total).emit("log") + top
    if not keepdims:
        logarithm, sign = reducing.sum(logarithm, axis), reducing.sum(sign, axis)
    return (logarithm, sign) if return_sign else logarithm


def softplus(x: Array, **options: Any) -> Array:
    return apply_ufunc("logaddexp", floating(x), 0.0, **options)


def polygamma(n: Operand, x: Operand) -> Array:
    like = arrays_in([n, x])[0]
    order, at = (lift(v, like, "f64") for v in (n, x))
    shape = common_shape(order.shape, at.shape)
    return order.broadcast(shape).emit("polygamma", at.broadcast(shape))


def zeta(x: Operand, q: Operand = None, out: None = None) -> Array:
    """For x > 1; SciPy goes on to the left where q is left out."""
    s, start = floats(x, np.ones((), getattr(x, "dtype", float)) if q is None else q)
    return s.emit("zeta", start)


def multigammaln(a: Operand, d: int) -> Array:
    (x,) = floats(a)
    terms = [(x - (j / 2)).emit("lgamma") for j in range(d)]
    return sum(terms[1:], terms[0]).convert("f64") + d * (d - 1) / 4 * math.log(math.pi)


def spherical_jn(n: int, z: Operand, derivative: bool = False) -> Array:
    if isinstance(n, Array) or np.ndim(n):
        raise BuildError("spherical_jn takes its order as a fixed number; write np.stack([spherical_jn(n, x) for n in ...])")
    (x,) = floats(z)
    if not derivative:
        return x.emit("spherical_bessel_j", order=int(n))
    after = x.emit("spherical_bessel_j", order=n + 1)
    if n == 0:
        return -after
    return (x.emit("spherical_bessel_j", order=n - 1) * n - after * (n + 1)) * (1 / (2 * n + 1))


def factorial(n: Operand, exact: bool = False, extend: str = "zero") -> Array:
    _inexact("factorial", exact)
    if extend != "zero":
        raise UntraceableError(f"factorial with extend={extend!r} cannot be traced; write scipy.special.gamma(n + 1)")
    (x,) = floats(n, np.float64(0))[:1]
    inside = x >= 0
    return select(inside.emit("or", x.emit("ne", x)), (select(inside, x, filled(x, 0)) + 1).emit("gamma"), filled(x, 0))


def comb(N: Operand, k: Operand, *, exact: bool = False, repetition: bool = False) -> Array:  # noqa: N803
    _inexact("comb", exact)
    n, m = floats(N, k)
    if repetition:
        start = all_of(m.emit("eq", filled(m, 0)), n >= 0)
        several: Array = apply_ufunc("binom", n + m - 1, m if isinstance(k, Array) else k).convert(n.dtype).broadcast(n.shape)
        return select(start, filled(n, 1), several)
    inside = all_of(m <= n, n >= 0, m >= 0)
    ways = apply_ufunc("binom", select(inside, n, m), m if isinstance(k, Array) else k)
    return select(inside, ways.convert(n.dtype).broadcast(n.shape), filled(n, 0))


def perm(N: Operand, k: Operand, exact: bool = False) -> Array:  # noqa: N803
    _inexact("perm", exact)
    n, m = floats(N, k)
    inside = all_of(m <= n, n >= 0, m >= 0)
    ways = apply_ufunc("poch", select(inside, n - m + 1, filled(n, 1)), m if isinstance(k, Array) else k)
    return select(inside, ways.convert(n.dtype).broadcast(n.shape), filled(n, 0))


def _inexact(name: str, exact: bool) -> None:
    if exact:
        raise UntraceableError(f"{name} with exact=True cannot be traced, as graphs have no integers of any length; leave it out")


COMPOSED = {"softmax": reducing.softmax, "log_softmax": reducing.log_softmax}
