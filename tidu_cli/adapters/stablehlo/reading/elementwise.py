"""Operations on elements, of StableHLO and of chlo, which has more functions."""

from __future__ import annotations

import math

from tidu_cli.adapters.stablehlo.reading.site import Reader, RefusedError, Site
from tidu_cli.graph.types import COMPLEXES, FLOATS, ITEMSIZE
from tidu_cli.lax.names import ops_of
from tidu_cli.rules.terms import Term


def _named(op: str, **attrs: object) -> Reader:
    return lambda site, *operands: site.emit(op, *operands, **attrs)


def _compare(site: Site, x: Term, y: Term) -> Term:
    op = site.attribute("comparison_direction").lower()
    if site.attribute("compare_type") == "TOTALORDER" and x.type.dtype in FLOATS:
        x, y = _ranks(site, x), _ranks(site, y)
    return site.emit(op, x, y)


def _ranks(site: Site, x: Term) -> Term:
    """Integers in the total order of floats: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN.

    They are the bits of a float, of which a negative one has all turned round but that of the sign.
    """
    n = 8 * ITEMSIZE[x.type.dtype]
    bits = site.emit("bitcast_convert_type", x, new_dtype=f"i{n}")
    turned = site.emit("xor", bits, 2 ** (n - 1) - 1)
    return site.emit("select_n", site.emit("lt", bits, 0), bits, turned)


def _convert(site: Site, x: Term) -> Term:
    due = site.result.dtype
    if x.type.dtype == due:
        return x
    if due == "bool":  # of complex numbers XLA takes the real part
        return site.emit("ne", site.emit("real", x) if x.type.dtype in COMPLEXES else x, 0)
    return site.emit("convert_element_type", x, new_dtype=due)


def _select(site: Site, which: Term, x: Term, y: Term) -> Term:
    return site.emit("select_n", site.spread(which, x.type.shape), y, x)


def _clamp(site: Site, low: Term, x: Term, high: Term) -> Term:
    return site.emit("clamp", site.spread(low, x.type.shape), x, site.spread(high, x.type.shape))


def _abs(site: Site, x: Term) -> Term:
    return x if x.type.dtype.startswith("u") else site.emit("abs", x)


def _real(op: str) -> Reader:
    """Of real numbers themselves, or zeros."""

    def read(site: Site, x: Term) -> Term:
        if x.type.dtype in COMPLEXES:
            return site.emit(op, x)
        return x if op == "real" else site.recording.full(0, x.type)

    return read


def _precision(site: Site, x: Term) -> Term:
    return site.emit(
        "reduce_precision", x, exponent_bits=site.attribute("exponent_bits"), mantissa_bits=site.attribute("mantissa_bits")
    )


def _bitcast(site: Site, x: Term) -> Term:
    due = site.result
    if due.dtype == x.type.dtype:
        return x
    if due.shape != x.type.shape:
        raise RefusedError(f"takes the bits of {x.type} for those of {due}, which have another size")
    return site.emit("bitcast_convert_type", x, new_dtype=due.dtype)


def _power(site: Site, x: Term, y: Term) -> Term:
    """A power whose exponent is known and a small integer is one of our own kind, with better derivatives at 0."""
    if x.type.dtype not in FLOATS | COMPLEXES:
        return _power_of_integers(site, x, y)
    known = site.known(y)
    if known is not None and known.size and (known == known.flat[0]).all():
        n = known.flat[0]
        if n.imag == 0 and n.real == int(n.real if abs(n.real) < 64 else 0.5) and abs(n.real) < 64:
            return site.emit("integer_pow", x, y=int(n.real))
    return site.emit("pow", x, y)


def _power_of_integers(site: Site, x: Term, y: Term) -> Term:
    """Products by the bits of the exponent, as many as there are; a negative one leaves 0 but of 1 and -1."""
    full, type_ = site.recording.full, x.type
    known = site.known(y)
    n_bits = 8 * ITEMSIZE[type_.dtype] if known is None else max(1, max((int(k).bit_length() for k in known.flat), default=1))
    power, square = full(1, type_), x
    for k in range(n_bits):
        odd = site.emit("and", site.emit("shift_right_logical", y, full(k, type_)) if k else y, full(1, type_))
        power = site.emit("select_n", site.emit("ne", odd, 0), power, site.emit("mul", power, square))
        square = site.emit("mul", square, square) if k + 1 < n_bits else square
    if type_.dtype.startswith("u") or (known is not None and (known >= 0).all()):
        return power
    sign = site.emit("select_n", site.emit("ne", site.emit("and", y, full(1, type_)), 0), full(1, type_), x)
    inverse = site.emit("select_n", site.emit("eq", site.emit("mul", x, x), 1), full(0, type_), sign)
    inverse = site.emit("select_n", site.emit("le", site.emit("abs", x), 1), full(0, type_), inverse)
    return site.emit("select_n", site.emit("lt", y, 0), power, inverse)


def _constant_like(site: Site, x: Term) -> Term:
    value = site.attribute("value")
    return site.recording.full(value if not isinstance(value, dict) else 0, x.type)


STABLEHLO: dict[str, Reader] = {
    **{name: _named(op) for name, op in ops_of("stablehlo").items()},
    "abs": _abs,
    "add": lambda site, x, y: site.emit("or" if x.type.dtype == "bool" else "add", x, y),
    "bitcast_convert": _bitcast,
    "clamp": _clamp,
    "compare": _compare,
    "convert": _convert,
    "imag": _real("imag"),
    "maximum": lambda site, x, y: site.emit("or" if x.type.dtype == "bool" else "max", x, y),
    "minimum": lambda site, x, y: site.emit("and" if x.type.dtype == "bool" else "min", x, y),
    "multiply": lambda site, x, y: site.emit("and" if x.type.dtype == "bool" else "mul", x, y),
    "optimization_barrier": lambda site, *xs: site.emit_all("optimization_barrier", *xs),
    "power": _power,
    "real": _real("real"),
    "reduce_precision": _precision,
    "round_nearest_afz": _named("round", rounding_method="AWAY_FROM_ZERO"),
    "round_nearest_even": _named("round", rounding_method="TO_NEAREST_EVEN"),
    "select": _select,
}

CHLO: dict[str, Reader] = {
    **{name: _named(op) for name, op in ops_of("chlo").items()},
    "constant_like": _constant_like,
    "is_inf": lambda site, x: site.emit("eq", site.emit("abs", x), math.inf),
    "is_neg_inf": lambda site, x: site.emit("eq", x, -math.inf),
    "is_pos_inf": lambda site, x: site.emit("eq", x, math.inf),
}

OPERATIONS: dict[str, Reader] = {
    **{f"stablehlo.{name}": reader for name, reader in STABLEHLO.items()},
    **{f"chlo.{name}": reader for name, reader in CHLO.items()},
}
