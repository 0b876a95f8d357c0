"""Complex numbers, halves and Fourier transforms in C: NumPy's values, also at zeros, infinities and NaN, and where floats end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.c.compiled import compiled
from tests.c.test_primitives import documented
from tests.c.test_programs import CC, agree, values_for
from tests.graphs.derived import derivatives
from tests.graphs.strategies import REAL, documents, seeds
from tests.graphs.templates import apply, make_case
from tests.tiers import examples
from tidu_cli.adapters.numpy.api import trace
from tidu_cli.graph.closed import cases_within
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

FUNCTIONS = [
    "neg", "square", "sign", "conj", "exp", "exp2", "expm1", "log", "log1p", "logistic", "sqrt", "rsqrt", "sin", "cos", "tan",
    "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "abs", "real", "imag",
]  # fmt: skip
SIZES = {"c128": (1e-320, 1e300, 710.0, np.float64), "c64": (1e-42, 1e36, 89.0, np.float32)}
HALVES = ("f16", "bf16")
ADDED = {
    "dimension_numbers": {
        "update_window_dims": [], "inserted_window_dims": [0], "scatter_dims_to_operand_dims": [0],
    },
    "mode": "clip",
}  # fmt: skip


def special(dtype):
    """Pairs of special numbers, and numbers of all sizes from 0.001 to 100."""
    tiny, huge, steep, _ = SIZES[dtype]
    parts = [0.0, 0.5, 1.0, 2.0, np.inf, tiny, huge, 30.0, np.pi, steep]
    parts = [np.nan, *parts, *(-x for x in parts)]
    rng = np.random.default_rng(0)
    re, im = 10.0 ** rng.uniform(-3, 2, (2, 1000)) * rng.choice([-1, 1], (2, 1000))
    return np.concatenate([[complex(a, b) for a in parts for b in parts], re + 1j * im]).astype(numpy_dtype(np, dtype))


def classes(x):
    """Of each number whether it is NaN, or which infinity."""
    return np.where(np.isinf(x), np.sign(x), np.where(np.isnan(x), 2, 0))


@CC
@pytest.mark.parametrize("dtype", sorted(SIZES))
def test_functions_of_complex_numbers_are_numpys_few_units_off(dtype, tmp_path):
    z, (_, huge, steep, real) = special(dtype), SIZES[dtype]
    cases = [make_case(op, {}, [TensorType(dtype, z.shape)]) for op in FUNCTIONS]
    made = compiled(documented(cases), tmp_path, "-O0")(*[z] * len(cases))
    for op, value, case in zip(FUNCTIONS, made, cases, strict=True):
        (expected,) = apply(case, [z])
        with np.errstate(all="ignore"):
            # SciPy's expm1 overflows before NumPy's exp does; 1e36 ln 2 is another number, with another sine, once it is rounded.
            taken = np.full(z.shape, True)
            if op in ("expm1", "exp2"):
                taken = z.real < steep if op == "expm1" else abs(z.imag) != real(huge)
            size = np.abs(expected)
        size = np.maximum(np.where(np.isfinite(size), size, np.finfo(real).max), np.finfo(real).tiny)
        for a, b in ((value.real, expected.real), (value.imag, expected.imag)):
            np.testing.assert_array_equal(classes(a)[taken], classes(b)[taken], err_msg=op)
            finite = np.isfinite(a) & np.isfinite(b) & taken
            units = np.abs(a[finite] / 2 - b[finite] / 2) / size[finite] * 2 / np.finfo(real).eps
            # Sines of hundreds in SciPy's expm1, and angles of ours in single where NumPy's are in double, lose digits.
            assert units.max() < {"expm1": 5000, "exp2": 100}.get(op, 6), (op, units.max(), z[finite][units.argmax()])


@CC
@pytest.mark.parametrize("dtype", sorted(SIZES))
def test_products_quotients_and_powers_are_numpys(dtype, tmp_path):
    tiny, huge, _, real = SIZES[dtype]
    parts = [0.0, -0.0, 1.5, -2.0, np.inf, np.nan, huge, tiny]
    numbers = np.array([complex(a, b) for a in parts for b in parts], numpy_dtype(np, dtype))
    x, y = (np.ravel(v) for v in np.meshgrid(numbers, numbers))

    def is_exact(z):
        return ~np.isin(abs(z.real), [real(huge), real(tiny)]) & ~np.isin(abs(z.imag), [real(huge), real(tiny)])

    ops = ["add", "sub", "mul", "div", "strong_mul", "strong_div", "eq", "ne", "pow"]
    types = [TensorType(dtype, x.shape)] * 2
    cases = [make_case(op, {}, types) for op in ops]
    made = compiled(documented(cases), tmp_path, "-O0")(*[x, y] * len(cases))
    for op, value, case in zip(ops, made, cases, strict=True):
        (expected,) = apply(case, [x, y])
        if op == "pow":  # beyond exact powers products of logarithms lose digits, and infinities what they are
            some = np.isin(y, [0, 1.5, -2]) & (np.abs(x) < 10) & (np.abs(x) > 0.1)
            np.testing.assert_allclose(value[some], expected[some], 20 * np.finfo(real).eps)
        else:
            # Whether NumPy's products are fused with sums, and so rounded once, depends on the machine.
            fits = np.full(x.shape, True) if "mul" not in op else is_exact(x) & is_exact(y)
            np.testing.assert_array_equal(value[fits], expected[fits], err_msg=op)


@CC
@pytest.mark.parametrize("dtype", sorted(SIZES))
def test_powers_of_zeros_and_infinities_and_by_large_integers_are_numpys(dtype, tmp_path):
    """Infinities are not multiplied by 1 on the way, and integers are no `float`s, which would lose their last digits."""
    parts = [0.0, -0.0, 1.5, -2.0, np.inf, np.nan]
    numbers = np.array([complex(a, b) for a in parts for b in parts], numpy_dtype(np, dtype))
    zeros, exponents = (np.ravel(v) for v in np.meshgrid(numbers[np.abs(numbers) == 0], numbers))
    units = np.exp(1j * np.linspace(0, 6, 50)).astype(numpy_dtype(np, dtype))
    many = np.full(50, 2**31 - 1, np.int32)
    own, counts = TensorType(dtype, numbers.shape), TensorType("i32", numbers.shape)
    runs = [(make_case("integer_pow", {"y": y}, [own]), [numbers]) for y in (1, 2, 3)]
    runs += [(make_case("pow", {}, [own, counts]), [numbers, np.full(numbers.shape, y, np.int32)]) for y in (1, 2, 3)]
    runs += [(make_case("pow", {}, [TensorType(dtype, zeros.shape)] * 2), [zeros, exponents])]
    runs += [(make_case("pow", {}, [TensorType(dtype, (50,)), TensorType("i32", (50,))]), [units, many])]
    runs += [(make_case("integer_pow", {"y": 2**31 - 1}, [TensorType(dtype, (50,))]), [units])]
    made = compiled(documented([case for case, _ in runs]), tmp_path, "-O0")(*[x for _, xs in runs for x in xs])
    for value, (case, operands) in zip(made, runs, strict=True):
        (expected,) = apply(case, operands)
        tolerance = 1e-5 if len(value) == 50 else 0  # a unit in an angle is 2³¹ in its multiple
        np.testing.assert_allclose(value, expected, tolerance, tolerance, err_msg=str(case))


@CC
def test_angles_at_branch_cuts_are_numpys(tmp_path):
    """-0 by a real number is 0 in NumPy's quotients."""
    parts = [0.0, -0.0, 0.5, -3.0]
    numbers = np.array([complex(a, b) for a in parts for b in parts])
    y, x = (np.ravel(v) for v in np.meshgrid(numbers, numbers))
    case = make_case("atan2", {}, [TensorType("c128", x.shape)] * 2)
    (value,), (expected,) = compiled(documented([case]), tmp_path, "-O0")(y, x), apply(case, [y, x])
    taken = np.isfinite(expected) & (np.abs(x * x + y * y) > 0)
    assert taken.sum() > 100
    np.testing.assert_allclose(value[taken], expected[taken], 1e-13, 1e-13)


@CC
@pytest.mark.parametrize("dtype", HALVES)
def test_halves_are_rounded_as_numpy_rounds_them(dtype, tmp_path):
    """Every half there is, and doubles and floats that lie halfway between two, or next to that."""
    own = numpy_dtype(np, dtype)
    every = np.arange(2**16, dtype=np.uint16).view(own)
    with np.errstate(all="ignore"):
        wide = every.astype(np.float64)
        ties = np.concatenate([(wide[:-1] + wide[1:]) / 2, wide])
        ties = np.concatenate([ties, np.nextafter(ties, 0), np.nextafter(ties, np.inf)])
        floats = ties.astype(np.float32)
        floats = np.concatenate([floats, np.nextafter(floats, np.float32(0))])
    other = np.roll(every, 12345)
    given_ = [
        (make_case("convert_element_type", {"new_dtype": dtype}, [TensorType("f64", ties.shape)]), [ties]),
        (make_case("convert_element_type", {"new_dtype": dtype}, [TensorType("f32", floats.shape)]), [floats]),
        (make_case("convert_element_type", {"new_dtype": "f64"}, [TensorType(dtype, every.shape)]), [every]),
        (make_case("bitcast_convert_type", {"new_dtype": "u16"}, [TensorType(dtype, every.shape)]), [every]),
        *((make_case(op, {}, [TensorType(dtype, every.shape)]), [every]) for op in ("sqrt", "neg", "floor", "square")),
        *((make_case(op, {}, [TensorType(dtype, every.shape)] * 2), [every, other]) for op in ("add", "mul", "div", "nextafter")),
    ]
    cases = [case for case, _ in given_]
    made = compiled(documented(cases), tmp_path, "-O1")(*[x for _, xs in given_ for x in xs])
    with np.errstate(all="ignore"):
        for value, (case, operands) in zip(made, given_, strict=True):
            (expected,) = apply(case, operands)
            is_nan = np.isnan(operands[0] if case.op == "bitcast_convert_type" else expected)
            assert value[~is_nan].tobytes() == expected[~is_nan].tobytes(), case
            assert case.op == "bitcast_convert_type" or np.isnan(value[is_nan]).all(), case


@CC
def test_sums_of_halves_grow(tmp_path):
    """They are those of floats, as in NumPy's kernels: by themselves they would stop at 2048."""
    document = trace(lambda x: (np.sum(x), np.cumsum(x)[-1], x @ x), "f16[5000]")
    x = np.ones(5000, np.float16)
    scattered = make_case("scatter-add", ADDED, [TensorType("f16", (3,)), TensorType("i32", (5000, 1)), TensorType("f16", (5000,))])
    (sums,) = compiled(documented([scattered]), tmp_path)(np.zeros(3, np.float16), np.zeros((5000, 1), np.int32), x)
    assert {float(y) for y in compiled(document, tmp_path)(x)} == {float(sums[0])} == {5000.0}


@CC
@settings(max_examples=examples(60, check=12))
@given(st.sampled_from([("c128", "f64"), ("c64", "f32")]).flatmap(lambda dtypes: documents(dtypes=dtypes)), seeds)
def test_random_documents_of_complex_numbers(document, seed):
    types = {t.dtype for case in cases_within(document.cases.cases) for t in (*case.operands, *case.results)}
    if not (types & {"c64", "f32"} and types & {"c128", "f64"}):  # doubles of singles are off by units of singles
        agree(document, values_for(document, seed))


@CC
@settings(max_examples=examples(40, check=8))
@given(documents(makers=REAL, dtypes=("f16", "bf16", "f32")), seeds)
def test_random_documents_of_halves(document, seed):
    agree(document, values_for(document, seed))


@CC
@settings(max_examples=examples(60, check=8))
@given(documents(dtypes=("c128",), max_graphs=2, max_nodes=10), seeds)
def test_derivatives_of_random_documents_of_complex_numbers(document, seed):
    for number, derivative in enumerate(derivatives(document)):
        agree(derivative, values_for(derivative, seed), *["-O2"] * number)


@CC
def test_callers_have_complex_numbers_as_pairs(tmp_path):
    document = trace(lambda z, x: np.sum(z * x), "c64[2]", "f32[2]")
    run = compiled(materialize(document), tmp_path)
    source = run.source.read_text()
    assert "(const float *in_z, const float *in_x, float *out_y, " in source
    assert [line.split()[-1] for line in source.splitlines() if line.startswith("#define") and "_SIZE_" in line] == [
        "4L",
        "2L",
        "2L",
    ]
    assert "complex.h" not in source


LENGTHS = (1, 2, 3, 4, 5, 6, 8, 12, 16, 35, 49, 53, 59, 64, 101, 128, 210, 360, 509, 1000, 1024, 2187)
"""Of each kind of factor, and such as are convolutions."""


@CC
@pytest.mark.parametrize("dtype", sorted(SIZES))
def test_fourier_transforms_of_any_length(dtype, tmp_path):
    """Errors are units times the logarithm of the length, whatever its factors are."""
    rng, real = np.random.default_rng(0), SIZES[dtype][3]
    kinds = [(kind, n) for n in LENGTHS for kind in ("FFT", "IFFT", "RFFT", "IRFFT")]
    cases, operands = [], []
    for kind, n in kinds:
        shape = (2, n // 2 + 1 if kind == "IRFFT" else n)
        x = rng.normal(size=shape) + (0 if kind == "RFFT" else 1j * rng.normal(size=shape))
        type_ = TensorType({"c128": "f64", "c64": "f32"}[dtype] if kind == "RFFT" else dtype, shape)
        operands.append(x.astype(numpy_dtype(np, type_.dtype)))
        cases.append(make_case("fft", {"fft_type": kind, "fft_lengths": [n]}, [type_]))
    made = compiled(documented(cases), tmp_path, "-O1")(*operands)
    for (kind, n), value, x in zip(kinds, made, operands, strict=True):
        wide = x.astype(np.longdouble if kind == "RFFT" else np.clongdouble)
        expected = getattr(np.fft, kind.lower())(wide, n=n)
        error = np.linalg.norm(value - expected) / np.linalg.norm(expected)
        assert error < (1 + np.log2(n) / 2) * np.finfo(real).eps, (kind, n, error / np.finfo(real).eps)


@CC
@pytest.mark.parametrize("n", [12, 59])
def test_derivatives_of_fourier_transforms(n):
    def loss(x, y):
        z = np.fft.fft(np.exp(1j * x) * np.fft.irfft2(np.fft.rfft2(y), s=(2, n))[1])
        return np.sum(np.abs(np.fft.ifft(z * np.tanh(z))) ** 2)

    document = trace(loss, f"f64[{n}]", f"f64[2,{n}]")
    first = transpose(linearize(document, [Key("x"), Key("y")]))
    agree(first, values_for(first, 1), "-O2")
    second = linearize(materialize(first), [Key("x")])
    agree(second, values_for(second, 1), "-O2")


@CC
def test_real_is_of_complex_numbers_and_halves_too(tmp_path):
    document = materialize(trace(lambda z, h: (np.sum(np.fft.fft(z) * np.exp(h)), h * h), "c128[5]", "f16[5]"))
    z, h = np.arange(5) * (1 - 2j), np.linspace(0, 1, 5, dtype=np.float16)
    # Halves are numbers of their own where --real leaves them be, and wider where it does not.
    exact = (np.sum(np.fft.fft(z) * np.exp(h.astype(float))), h.astype(float) ** 2)
    for real, dtypes in (("float", ["c64", "f32"]), ("double", ["c128", "f64"])):
        run = compiled(document, tmp_path, "-O1", real=real)
        assert [i["dtype"] for i in run.described["inputs"]] == dtypes == [o["dtype"] for o in run.described["outputs"]]
        text = run.source.read_text()
        assert ("double" in text) is (real == "double") and "uint16_t" not in text
        for value, expected in zip(run(z, h), exact, strict=True):
            np.testing.assert_allclose(value, expected, 1e-6 if real == "float" else 1e-14)


@CC
def test_derivatives_of_functions_of_complex_matrices():
    def loss(a, b):
        square = a @ np.conj(a.T) + np.eye(3)
        factor, q = np.linalg.cholesky(square), np.linalg.qr(a)[0]
        return np.sum(np.abs(np.linalg.solve(factor, b) + np.linalg.solve(a, q @ b)) ** 2)

    first = transpose(linearize(trace(loss, "c128[3,3]", "c128[3]"), [Key("a"), Key("b")]))
    agree(first, values_for(first, 1))
    of_factors = trace(lambda a: np.sum(np.abs(np.linalg.cholesky(a @ np.conj(a.T) + np.eye(2)))), "c128[2,2]")
    second = linearize(materialize(transpose(linearize(of_factors, [Key("a")]))), [Key("a")])
    agree(second, values_for(second, 1))
