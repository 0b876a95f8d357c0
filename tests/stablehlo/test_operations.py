"""Operations on elements compute what XLA does of all pairs of edge values, integers exactly; subnormal numbers XLA takes for 0."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.stablehlo.claims.written import by_xla, in_this_process
from tests.tiers import few
from tidu_cli.adapters.stablehlo.files import read_stablehlo
from tidu_cli.graph.keys import Key
from tidu_cli.runtime.evaluate import evaluate

DTYPES: dict[str, Any] = {
    "i1": "?", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "ui8": "u1", "ui16": "u2", "ui32": "u4", "ui64": "u8",
    "f16": "f2", "bf16": ml_dtypes.bfloat16, "f32": "f4", "f64": "f8",
}  # fmt: skip
INTEGERS = [t for t in DTYPES if "i" in t and t != "i1"]
FLOATS = [t for t in DTYPES if "f" in t]
SIGNED = [t for t in INTEGERS if t[0] == "i"]

UNARY = {
    "abs": SIGNED + FLOATS, "negate": INTEGERS + FLOATS, "sign": SIGNED + FLOATS,
    "popcnt": INTEGERS, "count_leading_zeros": INTEGERS, "not": ["i1", *INTEGERS], "real": FLOATS, "imag": FLOATS,
    **dict.fromkeys(["ceil", "floor", "round_nearest_afz", "round_nearest_even", "sqrt", "rsqrt", "cbrt", "exponential", "log",
                     "exponential_minus_one", "log_plus_one", "logistic", "sine", "cosine", "tan", "tanh"], FLOATS),
}  # fmt: skip
NUMBERS = INTEGERS + FLOATS
BINARY = {
    **{name: ["i1", *NUMBERS] for name in ("add", "multiply", "maximum", "minimum")},
    **dict.fromkeys(("subtract", "divide", "remainder", "power"), NUMBERS),
    **{name: ["i1", *INTEGERS] for name in ("and", "or", "xor")},
    **dict.fromkeys(("shift_left", "shift_right_arithmetic", "shift_right_logical"), INTEGERS),
    "atan2": FLOATS,
}


def edges(type_: str) -> Any:
    """Values at which something happens, no subnormal ones."""
    dtype = np.dtype(DTYPES[type_])
    if type_ == "i1":
        return np.array([False, True])
    if type_ in INTEGERS:
        most = np.iinfo(dtype)
        some = {0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, -1, -2, -3, -8, most.min, most.min + 1, most.max - 1, most.max}
        return np.array(sorted(v for v in some if most.min <= v <= most.max), dtype)
    some = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 10.0, 300.0, 7e4, 3e9, 1e19, np.inf, np.nan, np.pi, 1e-3]
    with np.errstate(over="ignore"):
        return np.array([sign * v for v in some for sign in (1, -1)]).astype(dtype)


def require_as_xla(line: str, given: list[Any], types: list[str], due: str) -> None:
    """Raises AssertionError unless an operation on arrays %a0, %a1 has XLA's results."""
    n = len(given[0])
    arguments = ", ".join(f"%a{k}: tensor<{n}x{t}>" for k, t in enumerate(types))
    of = ", ".join(f"tensor<{n}x{t}>" for t in types)
    result = f"tensor<{n}x{due}>"
    text = f"func.func @main({arguments}) -> {result} {{\n%r = {line} : ({of}) -> {result}\nreturn %r : {result}\n}}"
    document = read_stablehlo(text.encode(), "text", "m.mlir").document
    with np.errstate(all="ignore"):
        array = np.asarray(evaluate(document.head, {Key(str(k)): x for k, x in enumerate(given)})[Key("y")])
    (expected,) = by_xla(text, given)
    assert array.dtype == expected.dtype
    if due not in FLOATS:
        np.testing.assert_array_equal(array, expected)
        return
    few = 64 * float(ml_dtypes.finfo(expected.dtype).eps)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(array.astype("f8"), expected.astype("f8"), few, 64 * float(ml_dtypes.finfo(expected.dtype).tiny))


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidu_cli.adapters.stablehlo.files.parsed", in_this_process)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    for type_ in few(UNARY[name], 2):
        require_as_xla(f'"stablehlo.{name}"(%a0)', [edges(type_)], [type_], type_)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    """Of integers XLA reads but six bits of an exponent, so that larger ones are left out."""
    for type_ in few(BINARY[name], 3):
        x, y = (v.ravel() for v in np.meshgrid(edges(type_), edges(type_)))
        if name == "power" and type_ in INTEGERS:
            x, y = x[y < 64], y[y < 64]
        require_as_xla(f'"stablehlo.{name}"(%a0, %a1)', [x, y], [type_] * 2, type_)


@pytest.mark.parametrize("type_", DTYPES)
def test_conversions(type_: str) -> None:
    types = list(DTYPES)
    k = types.index(type_)
    for due in few((*types[k:], *types[:k]), 3):
        require_as_xla('"stablehlo.convert"(%a0)', [edges(type_)], [type_], due)


ARRAY, FEATURES = "tensor<2x3xf64>", "tensor<3xf64>"
NORMAL = "{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}"


@pytest.mark.parametrize(
    ("line", "types", "dues"),
    [
        ('"stablehlo.einsum"(%a0, %a1) {einsum_config = "ab,cb->ac"}', [ARRAY] * 2, ["tensor<2x2xf64>"]),
        (f'"stablehlo.batch_norm_inference"(%a0, %a1, %a2, %a3, %a4) {NORMAL}', [ARRAY] + [FEATURES] * 4, [ARRAY]),
        (f'"stablehlo.batch_norm_training"(%a0, %a1, %a2) {NORMAL}', [ARRAY] + [FEATURES] * 2, [ARRAY, FEATURES, FEATURES]),
        (f'"stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) {NORMAL}', [ARRAY] + [FEATURES] * 3 + [ARRAY],
         [ARRAY, FEATURES, FEATURES]),
    ],
)  # fmt: skip
def test_operations_that_stand_for_others(line: str, types: list[str], dues: list[str]) -> None:
    rng = np.random.default_rng(0)
    given = [np.abs(rng.standard_normal((2, 3) if t == ARRAY else 3)) for t in types]
    arguments = ", ".join(f"%a{k}: {t}" for k, t in enumerate(types))
    names = ", ".join(f"%r#{k}" for k in range(len(dues)))
    of, result = ", ".join(types), ", ".join(dues)
    head = f"func.func @main({arguments}) -> ({result})"
    text = f"{head} {{\n%r:{len(dues)} = {line} : ({of}) -> ({result})\nreturn {names} : {result}\n}}"
    document = read_stablehlo(text.encode(), "text", "m.mlir").document
    results = evaluate(document.head, {Key(str(k)): x for k, x in enumerate(given)})
    for y, due in zip(results.values(), by_xla(text, given), strict=True):
        np.testing.assert_allclose(y, due, 1e-12, 1e-12)
