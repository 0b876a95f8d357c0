"""What other systems call an operation, where they have just this one: whoever reads or writes these systems takes it from here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

_NAMES: Mapping[str, str] = {
    "sub": "stablehlo.subtract",
    "div": "stablehlo.divide",
    "neg": "numpy.negative stablehlo.negate onnx.Neg",
    "max": "numpy.maximum",
    "min": "numpy.minimum",
    "sign": "numpy.sign stablehlo.sign onnx.Sign",
    "exp": "numpy.exp math.exp stablehlo.exponential onnx.Exp",
    "exp2": "numpy.exp2 math.exp2",
    "expm1": "numpy.expm1 math.expm1 stablehlo.exponential_minus_one",
    "log": "numpy.log math.log stablehlo.log onnx.Log",
    "log1p": "numpy.log1p math.log1p stablehlo.log_plus_one",
    "logistic": "scipy.special.expit stablehlo.logistic",
    "sqrt": "numpy.sqrt math.sqrt stablehlo.sqrt onnx.Sqrt",
    "rsqrt": "stablehlo.rsqrt",
    "cbrt": "numpy.cbrt math.cbrt stablehlo.cbrt",
    "square": "numpy.square chlo.square",
    "sin": "numpy.sin math.sin stablehlo.sine onnx.Sin",
    "cos": "numpy.cos math.cos stablehlo.cosine onnx.Cos",
    "tan": "numpy.tan math.tan stablehlo.tan chlo.tan onnx.Tan",
    "asin": "numpy.arcsin math.asin chlo.asin onnx.Asin",
    "acos": "numpy.arccos math.acos chlo.acos onnx.Acos",
    "atan": "numpy.arctan math.atan chlo.atan onnx.Atan",
    "atan2": "numpy.arctan2 math.atan2 stablehlo.atan2",
    "sinh": "numpy.sinh math.sinh chlo.sinh onnx.Sinh",
    "cosh": "numpy.cosh math.cosh chlo.cosh onnx.Cosh",
    "tanh": "numpy.tanh math.tanh stablehlo.tanh onnx.Tanh",
    "asinh": "numpy.arcsinh math.asinh chlo.asinh onnx.Asinh",
    "acosh": "numpy.arccosh math.acosh chlo.acosh onnx.Acosh",
    "atanh": "numpy.arctanh math.atanh chlo.atanh onnx.Atanh",
    "erf": "scipy.special.erf math.erf chlo.erf onnx.Erf",
    "erfc": "scipy.special.erfc math.erfc chlo.erfc",
    "erf_inv": "scipy.special.erfinv chlo.erf_inv",
    "gamma": "scipy.special.gamma math.gamma",
    "lgamma": "scipy.special.gammaln math.lgamma chlo.lgamma",
    "digamma": "scipy.special.psi chlo.digamma",
    "polygamma": "chlo.polygamma",
    "zeta": "chlo.zeta",
    "igamma": "scipy.special.gammainc",
    "igammac": "scipy.special.gammaincc",
    "regularized_incomplete_beta": "scipy.special.betainc",
    "bessel_i0e": "scipy.special.i0e",
    "bessel_i1e": "scipy.special.i1e chlo.bessel_i1e",
    "igamma_inv": "scipy.special.gammaincinv",
    "igammac_inv": "scipy.special.gammainccinv",
    "regularized_incomplete_beta_inv": "scipy.special.betaincinv",
    "erfcx": "scipy.special.erfcx",
    "erfc_inv": "scipy.special.erfcinv",
    "dawsn": "scipy.special.dawsn",
    "expi": "scipy.special.expi",
    "owens_t": "scipy.special.owens_t",
    "spence": "scipy.special.spence",
    "hyp1f1": "scipy.special.exprel",
    "floor": "stablehlo.floor",
    "ceil": "stablehlo.ceil",
    "rem": "numpy.fmod math.fmod stablehlo.remainder",
    "is_finite": "stablehlo.is_finite",
    "nextafter": "numpy.nextafter chlo.next_after",
    "conj": "chlo.conj",
    "complex": "stablehlo.complex",
    "not": "numpy.invert stablehlo.not",
    "and": "numpy.bitwise_and stablehlo.and",
    "or": "numpy.bitwise_or stablehlo.or",
    "xor": "numpy.bitwise_xor stablehlo.xor",
    "shift_left": "numpy.left_shift stablehlo.shift_left",
    "shift_right_logical": "stablehlo.shift_right_logical",
    "shift_right_arithmetic": "stablehlo.shift_right_arithmetic",
    "population_count": "numpy.bitwise_count stablehlo.popcnt",
    "clz": "stablehlo.count_leading_zeros",
}
"""By op, each name with its system: NumPy, SciPy, `math`, StableHLO and its CHLO, ONNX."""


def names_of(op: str) -> list[str]:
    """The names of an op, `numpy.arcsin` and so on; none if nobody has just this operation."""
    return _NAMES.get(op, "").split()


@cache
def ops_of(system: str) -> Mapping[str, str]:
    """The ops of a system by its names: of `numpy`, `{"arcsin": "asin", ...}`."""
    return {name.removeprefix(f"{system}."): op for op in _NAMES for name in names_of(op) if name.rpartition(".")[0] == system}


@cache
def names_in(system: str) -> Mapping[str, str]:
    """What a system calls its ops: of `numpy`, `{"asin": "arcsin", ...}`."""
    return {op: name for name, op in ops_of(system).items()}
