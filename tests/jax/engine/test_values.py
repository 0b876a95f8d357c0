"""XLA's values beside NumPy's: samples, all kinds of types, and functions that are loops, decompositions and transforms."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.linalg
import scipy.special
from hypothesis import HealthCheck, given, settings

import tidu_cli as tidu
from tests.graphs.interpret import random_inputs
from tests.graphs.record_graphs import record_graphs
from tests.graphs.strategies import seeds
from tests.tiers import examples, few
from tidu_cli.checking.numeric.trials import example_cases
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.graph import Document
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.evaluate import outward

pytestmark = [pytest.mark.jax, pytest.mark.usefixtures("jax")]

SAMPLES = Path(__file__).parents[3] / "samples"


def given_to(document: Document, seed: int) -> dict[str, Any]:
    """Values of the inputs, drawn at random, as users have them."""
    types = {i.key: i.type for i in document.free_inputs}
    return {str(key): outward(types[key], value) for key, value in random_inputs(document, seed).items()}


def assert_same(value: Any, due: Any) -> None:
    """Dtypes, shapes, fields, and values up to the roundings of some dozen operations."""
    if isinstance(due, dict):
        assert list(value) == list(due)
        for name, part in due.items():
            assert_same(value[name], part)
    elif isinstance(due, tuple):
        for x, y in zip(value, due, strict=True):
            assert_same(x, y)
    else:
        assert (value.dtype, value.shape) == (due.dtype, due.shape)
        if due.dtype.kind in "biu":
            np.testing.assert_array_equal(value, due)
        else:
            precise = np.dtype(due.dtype).itemsize // (2 if due.dtype.kind == "c" else 1) == 8
            np.testing.assert_allclose(*(x.astype("c16") for x in (value, due)), rtol=1e-12 if precise else 1e-2, atol=1e-12)


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.json")), ids=lambda path: path.name)
def test_samples(path: Path) -> None:
    document, _ = parse_document(path.read_bytes(), path.name)
    inputs = given_to(document, 0)
    assert_same(tidu.evaluate(document, inputs, engine="xla"), tidu.evaluate(document, inputs, engine="numpy"))


@pytest.mark.parametrize("op", ["abs", "pow", "exp2", "log1p", "atanh", "sinh", "cosh", "integer_pow"])
def test_what_replaces_functions_of_lax_takes_all_dtypes(op: str) -> None:
    import jax

    from tidu_cli.adapters.jax.lowering.primitives import PRECISE

    assert op in PRECISE and len(PRECISE) == 8
    with jax.enable_x64(True):
        for _, case in example_cases(BUILTIN, BUILTIN[op]):
            operands = [jax.ShapeDtypeStruct(t.shape, numpy_dtype(np, t.dtype)) for t in case.operands]
            attrs = case.attrs.to_data(binary=False)
            shaped = jax.eval_shape(lambda *xs, attrs=attrs: PRECISE[op](attrs, *xs), *operands)
            assert (shaped.dtype, shaped.shape) == (numpy_dtype(np, case.results[0].dtype), case.results[0].shape), case


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(record_graphs(), seeds)
def test_records(graphs: Any, seed: int) -> None:
    document, _ = graphs
    inputs = given_to(document, seed)
    assert_same(tidu.evaluate(document, inputs, engine="xla"), tidu.evaluate(document, inputs, engine="numpy"))


PRECISE: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "cholesky": (lambda a, b: np.linalg.solve(np.linalg.cholesky(a @ a.T + 3 * np.eye(3)), b), ("f64[3,3]", "f64[3]")),
    "eigh": (lambda a: np.linalg.eigvalsh(a @ a.T), ("f64[4,4]",)),
    "svd": (lambda a: np.linalg.svd(a, compute_uv=False), ("f64[5,3]",)),
    "qr": (lambda a: np.abs(np.linalg.qr(a)[1]), ("f64[5,3]",)),
    "expm": (lambda a: scipy.linalg.expm(a / 4), ("f64[3,3]",)),
    "fft": (lambda x: np.fft.ifft(np.fft.fft(x) * np.fft.fft(x[::-1])), ("c128[16]",)),
    "special": (lambda x: scipy.special.erf(x) + scipy.special.gammaln(x**2 + 1) + scipy.special.i0e(x), ("f64[7]",)),
    "scan": (lambda x, ys: tidu.scan(lambda c, y: (np.sin(c) + y, c * y), x, ys), ("f64[]", "f64[9]")),
    "while": (lambda x: tidu.while_loop(lambda c: c[0] < 100, lambda c: (c[0] * 2 + 1, c[1] + 1), (np.abs(x), 0)), ("f64[]",)),
    "cond": (lambda x: tidu.cond(x[0] > 0, lambda x: np.exp(x), lambda x: -x, x), ("f64[3]",)),
    "integers": (lambda n: (n * 2**30, n // 3, n % 3, n << 3, n ^ 5), ("i32[6]",)),
    "sort": (lambda x: (np.sort(x, axis=0), np.argsort(x, axis=1)), ("f64[5,4]",)),
    "nothing": (lambda x: (x.sum(), np.concatenate([x, x])), ("f64[0]",)),
}


@pytest.mark.parametrize("name", few(PRECISE, 5))
def test_functions_and_their_gradients(name: str) -> None:
    function, types = PRECISE[name]
    document = tidu.trace(function, *types)
    inputs = given_to(document, 1)
    assert_same(tidu.evaluate(document, inputs, engine="xla"), tidu.evaluate(document, inputs, engine="numpy"))
    wrt = [str(i.key) for i in document.head.inputs]
    if name != "integers":
        product = tidu.jvp(document, wrt)
        inputs |= {f"{key}@1": inputs[key] for key in wrt}
        assert_same(tidu.evaluate(product, inputs, engine="xla"), tidu.evaluate(product, inputs, engine="numpy"))


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
def test_powers_of_two_are_exact(dtype: str) -> None:
    x = np.arange(-14, 16) if dtype == "f16" else np.arange(-120, 121)
    (powers,) = tidu.evaluate(tidu.trace(lambda x: np.exp2(x), f"{dtype}[{x.size}]"), {"x": x}, engine="xla").values()
    np.testing.assert_array_equal(powers.astype(float), 2.0**x)


ELEMENTARY: dict[str, Callable[..., Any]] = {
    "log1p": np.log1p,
    "atanh": np.arctanh,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "x**100": lambda x: x**100,
    "x**-9": lambda x: x**-9,
}


@pytest.mark.parametrize("dtype", ["f64", "f32", "bf16"])
@pytest.mark.parametrize("name", ELEMENTARY)
def test_functions_to_their_last_digits(name: str, dtype: str) -> None:
    """Where XLA's own lose some: of log1p between -0.42 and -0.36, and of the others where operands or powers are great."""
    great = [80.0, -80.0, np.inf, -np.inf, *([700.0, -710.25] if dtype == "f64" else [])]
    x = np.concatenate([np.linspace(-3, 3, 301), great, [np.nan, -0.0]])
    document = tidu.trace(lambda x: ELEMENTARY[name](x), f"{dtype}[{x.size}]")
    x = x.astype(ml_dtypes.bfloat16 if dtype == "bf16" else dtype.replace("f", "float"))
    (values,), (due,) = (tidu.evaluate(document, {"x": x}, engine=engine).values() for engine in ("xla", "numpy"))
    limits = ml_dtypes.finfo(x.dtype)
    wide = values.astype("f8"), due.astype("f8")
    np.testing.assert_allclose(*wide, rtol=4 * float(limits.eps), atol=float(limits.smallest_normal))
    np.testing.assert_array_equal(np.signbit(wide[0][wide[1] == 0]), np.signbit(wide[1][wide[1] == 0]))


@pytest.mark.parametrize(("dtype", "numbers"), [("c64", np.complex64), ("c128", np.complex128)])
def test_complex_numbers_at_edges(dtype: str, numbers: type[np.complexfloating[Any, Any]]) -> None:
    """An infinite part outweighs NaN in magnitudes, and zero has powers."""
    infinite = [complex(part, other) for part in (np.inf, -np.inf) for other in (np.nan, 1.0, -np.inf)]
    z = np.array([*infinite, *[complex(x.imag, x.real) for x in infinite], complex(np.nan, 1), 3 + 4j, 0j], numbers)
    document = tidu.trace(lambda z: np.abs(z), f"{dtype}[{z.size}]")
    assert_same(tidu.evaluate(document, {"z": z}, engine="xla"), tidu.evaluate(document, {"z": z}, engine="numpy"))
    y = np.array([0, 2, 1 + 1j, 0.5 - 1j, -1, -1 - 1j, 1j], numbers)
    document = tidu.trace(lambda x, y: x**y, f"{dtype}[7]", f"{dtype}[7]")
    inputs = {"x": np.zeros(7, numbers), "y": y}
    assert_same(tidu.evaluate(document, inputs, engine="xla"), tidu.evaluate(document, inputs, engine="numpy"))


SIMPLIFIED: dict[str, Callable[..., Any]] = {
    "a magnitude is at least 0": lambda x, y: np.abs(x) >= 0,
    "what is 0 unless x is more": lambda x, y: np.maximum(x, 0.0) * (x > 0),
    "a sum less its term": lambda x, y: (x + 1e17) - 1e17,
    "a product by two factors": lambda x, y: (x * 1e-200) * 1e-200,
    "a quotient by a quotient": lambda x, y: x / (y / x),
    "a quotient of a quotient": lambda x, y: (x / y) / x,
    "a power of exp": lambda x, y: np.exp(x) ** y,
    "the logarithm of a power": lambda x, y: np.log(x**y),
    "the root of a square": lambda x, y: np.sqrt(x * x),
}


@pytest.mark.parametrize("name", SIMPLIFIED)
def test_what_real_numbers_would_allow_is_not_done(name: str) -> None:
    """As to turn x / (y / x) into x * x / y, which overflows where x / (y / x) does not, or to hold |x| >= 0 of NaN."""
    numbers = [0.0, -0.0, 1.0, -2.5, 0.5, 3.0, 1e300, 1e200, -1e200, 1e-200, np.inf, -np.inf, np.nan]
    x, y = (side.reshape(-1) for side in np.meshgrid(numbers, numbers))
    document = tidu.trace(SIMPLIFIED[name], f"f64[{x.size}]", f"f64[{x.size}]")
    inputs = {key: value for key, value in (("x", x), ("y", y)) if key in {str(i.key) for i in document.free_inputs}}
    assert_same(tidu.evaluate(document, inputs, engine="xla"), tidu.evaluate(document, inputs, engine="numpy"))


def test_large_arrays_go_through() -> None:
    document = tidu.trace(lambda x, y: np.tanh(x @ y), "f64[700,900]", "f64[900,500]")
    rng = np.random.default_rng(0)
    inputs = {"x": rng.normal(size=(700, 900)), "y": rng.normal(size=(900, 500))}
    assert_same(tidu.evaluate(document, inputs, engine="xla"), tidu.evaluate(document, inputs, engine="numpy"))


def test_records_of_one_name_and_other_fields_are_other_programs() -> None:
    for shape in ((), (2,)):
        type_ = f"f64{list(shape)}"
        graph = {
            "name": "f",
            "inputs": [{"key": "p", "type": "Point"}],
            "outputs": [{"key": "y", "value": 0, "type": "Point"}],
            "nodes": [],
        }
        text = json.dumps({"tidu": 1, "types": {"Point": {"x": type_}}, "graphs": [graph]})
        document, _ = parse_document(text.encode(), "points")
        inputs = {"p": {"x": np.ones(shape)}}
        assert_same(tidu.evaluate(document, inputs, engine="xla"), {"y": inputs["p"]})
