"""The functions of JAX of every primitive: values as NumPy's evaluation has them, at all examples in all dtypes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.jax.lowering.compiled import compiled
from tests.jax.lowering.test_special_functions import PRECISE, TABLE
from tests.jax.primitives import derivatives
from tests.jax.primitives.test_agreement import differs
from tests.jax.primitives.test_agreement import drawn as drawn_operands
from tests.tiers import campaign, few
from tidu_cli.adapters.jax.lowering.functions import jax_function
from tidu_cli.checking.numeric.trials import example_cases, of_operand, with_diagonal
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import DATETIMES, INTEGERS, RecordType, TensorType, Type, leaves
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN

pytestmark = [pytest.mark.jax, pytest.mark.usefixtures("jax")]

VECTORS = ("eigh", "eig", "svd", "schur", "qr")
"""Whose real vectors have the signs that LAPACK gives them, which is not the same one in NumPy and in JAX."""


def drawn(rng: Any, type_: Type, low: float, high: float) -> Any:
    """A value of a type in an interval, as kernels have it."""
    if isinstance(type_, RecordType):
        return tuple(drawn(rng, t, low, high) for _, t in type_.fields)
    dtype = numpy_dtype(np, type_.dtype)
    if type_.dtype == "bool":
        return rng.integers(0, 2, type_.shape).astype(bool)
    if type_.dtype in INTEGERS or type_.dtype in DATETIMES:
        least = max(int(low), 0) if type_.dtype.startswith("u") else int(low)
        return np.asarray(rng.integers(least, max(int(high), least + 1), type_.shape), dtype)
    x = rng.uniform(low, high, type_.shape)
    return np.asarray(x + 1j * rng.uniform(low, high, type_.shape) if type_.complex else x).astype(dtype)


def problems(op: str) -> Iterator[tuple[Case, list[Any]]]:
    rng = np.random.default_rng(3)
    for example, case in example_cases(BUILTIN, BUILTIN[op]):
        values = [drawn(rng, t, *of_operand(example.within, k)) for k, t in enumerate(case.operands)]
        added = [of_operand(example.diagonals, k) for k in range(len(values))]
        yield case, [with_diagonal(x, d) if d else x for x, d in zip(values, added, strict=True)]


def as_jax(type_: Type, value: Any) -> Any:
    """A value of kernels as a pytree of arrays: None is zeros."""
    import jax.numpy as jnp

    if isinstance(type_, TensorType):
        return jnp.zeros(type_.shape, numpy_dtype(np, type_.dtype)) if value is None else jnp.asarray(value)
    given = (None,) * len(type_.fields) if value is None else value
    parts = [as_jax(t, part) for (_, t), part in zip(type_.fields, given, strict=True)]
    return tuple(parts) if type_.is_tuple else dict(zip(type_.names, parts, strict=True))


def of_numpy(case: Case, operands: list[Any]) -> tuple[Any, ...]:
    kernel = BUILTIN[case.op].evaluation.kernel(np, case.attrs, case.operands, case.results)  # type: ignore[arg-type]
    with np.errstate(all="ignore"):
        results = kernel(*operands)
    return (results,) if len(case.results) == 1 else tuple(results)


def compare(case: Case, ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> None:
    assert len(theirs) == len(case.results)
    for k, (type_, x, y) in enumerate(zip(case.results, ours, theirs, strict=True)):
        x = as_jax(type_, x)
        for path, _ in leaves(type_):
            leaf, expected = np.asarray(at(y, path)), np.asarray(at(x, path))
            where = f"{case.op}({', '.join(map(str, case.operands))}) {dict(case.attrs)} result {k}{path}"
            assert (leaf.dtype, leaf.shape) == (expected.dtype, expected.shape), where
            if case.op in VECTORS and leaf.ndim >= 2:
                leaf, expected = abs(leaf), abs(expected)
            wrong = differs(leaf, expected, signs=False)
            assert not wrong.any(), f"{where}: {leaf[wrong][:4]} instead of {expected[wrong][:4]}"


def at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value[int(name)] if isinstance(value, tuple) else value[name]
    return value


OPS = sorted(p.name for p in BUILTIN)

SPECIAL = {*TABLE} - {*PRECISE}
"""These have tests of their own: test_special_functions.py."""


FEW = {"i32", "bf16", "c64"}
"""Dtypes that are tried each time; modules of StableHLO are made of these functions, and tried in others (tests/stablehlo)."""


def require_values_of_numpy(op: str, jax: Any, dtypes: set[str] | None = None, n: int | None = None) -> None:
    """Raises AssertionError where values of an operation's examples, of some dtypes or all, or of n of these, are not NumPy's."""
    of_dtypes = [p for p in problems(op) if dtypes is None or dtypes & {getattr(t, "dtype", "") for t in p[0].operands}]
    of_dtypes = of_dtypes if n is None else few(of_dtypes, n)
    functions = [jax_function(case) for case, _ in of_dtypes]
    given = [[as_jax(t, x) for t, x in zip(case.operands, operands, strict=True)] for case, operands in of_dtypes]
    theirs = compiled(lambda given: [function(*xs) for function, xs in zip(functions, given, strict=True)])(given)
    for k, (case, operands) in enumerate(of_dtypes):
        ours = of_numpy(case, operands)
        compare(case, ours, theirs[k])
        if k % 5 == 0 and (campaign() or OPS.index(op) % 4 == 0):  # as JAX compiles each operation of these
            compare(case, ours, functions[k](*given[k]))


@pytest.mark.parametrize("op", [op for op in OPS if op not in SPECIAL])
def test_values_are_those_of_numpy(op: str, jax: Any) -> None:
    require_values_of_numpy(op, jax, FEW, 1)


@pytest.mark.campaign
@pytest.mark.parametrize("op", OPS)
def test_values_of_all_dtypes_are_those_of_numpy(op: str, jax: Any) -> None:
    require_values_of_numpy(op, jax)


ONE = ("igamma", "bessel_j", "bessel_ie", "bessel_ke", "expn")
"""Which are compiled for long enough once."""

OWN = (
    *("cholesky", "igamma", "qr", "clamp", "svd", "eig", "eigh", "reduce_window_max", "reduce_window_min", "select_and_gather_add"),
    *("bessel_j", "bessel_ie", "bessel_ke", "expn", "erfcx", "erfc_inv", "dawsn", "owens_t", "cos_integral"),
)


@pytest.mark.parametrize("op", few(OWN, 2))
def test_derivatives_that_jax_has_not_are_those_of_tidu(op: str, jax: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivatives, "function_of_jax", jax_function)
    for example, case in example_cases(BUILTIN, BUILTIN[op]):
        if {t.dtype for t in (*case.operands, *case.results)} - {"f64", "c128"} or (op in ONE and case.operands[0].shape):
            continue
        at = derivatives.problem(case, drawn_operands(example, case), np.random.default_rng(1))
        kinds = derivatives.KINDS[:3] if op == "igamma" else derivatives.KINDS  # of orders twice, XLA compiles for minutes
        ours, theirs = derivatives.of_tidu(at), derivatives.of_jax(at, kinds)
        for kind in kinds:
            for value, expected in zip(theirs[kind], ours[kind], strict=True):
                assert not differs(value, expected, signs=False).any(), f"{case} {kind}: {value} instead of {expected}"


NAT = np.iinfo(np.int64).min
TIMES = np.array([[5, NAT, -3], [NAT, 2**63 - 1, 7], [4, 0, -(2**63) + 1]])
OTHERS = np.array([[4, 2, NAT], [NAT, 1, 7], [-4, 0, 9]])
DATES = TensorType("datetime[ms]", (3, 3))


@pytest.mark.parametrize(
    ("op", "operands", "attrs"),
    [
        *((op, (TIMES, OTHERS), {}) for op in ("max", "min", "eq", "ne", "lt", "le", "gt", "ge", "sub")),
        *((op, (TIMES, OTHERS, TIMES + 1), {}) for op in ("clamp",)),
        *((op, (TIMES,), {"axes": (1,)}) for op in ("reduce_max", "reduce_min")),
        *((op, (TIMES,), {"axes": (0,), "index_dtype": "i32"}) for op in ("argmax", "argmin")),
        *((op, (TIMES,), {"axis": 1, "reverse": r}) for op in ("cummax", "cummin") for r in (False, True)),
        ("sort", (TIMES, OTHERS), {"dimension": 0, "num_keys": 2, "is_stable": True}),
        ("top_k", (TIMES,), {"k": 2, "axis": 1}),
        *(("convert_element_type", (TIMES,), {"new_dtype": t}) for t in ("datetime[D]", "datetime[us]", "f64", "i64", "c128")),
    ],
)  # fmt: skip
def test_what_is_no_time_is_as_in_numpy(op: str, operands: tuple[Any, ...], attrs: dict[str, Any], jax: Any) -> None:
    case = BUILTIN.case(op, BUILTIN.parse_attrs(op, attrs), None, [DATES] * len(operands))
    compare(case, of_numpy(case, list(operands)), jax_function(case)(*map(jax.numpy.asarray, operands)))


@pytest.mark.parametrize("dtype", ["bool", "i8", "u8", "i32", "u32", "i64", "u64"])
def test_branches_are_clamped_in_the_dtype_of_the_index(dtype: str, jax: Any) -> None:
    from tidu_cli.control_flow.graphs import two_branches

    case = BUILTIN.case(
        "cond", BUILTIN[("cond")].domain.attrs(**two_branches()), None, [TensorType(dtype), TensorType("f64", (3,))]
    )
    x = np.array([0.3, 1.0, 2.0])
    ends = [False, True] if dtype == "bool" else [np.iinfo(numpy_dtype(np, dtype)).min, 0, 1, np.iinfo(numpy_dtype(np, dtype)).max]
    for index in np.array(ends, numpy_dtype(np, dtype)):
        compare(case, of_numpy(case, [index, x]), jax_function(case)(jax.numpy.asarray(index), jax.numpy.asarray(x)))


def test_most_primitives_are_one_equation(jax: Any) -> None:
    """What a module of StableHLO has a line for: no conversions, calls or broadcasts around it."""
    several = {op for op in OPS if any(len(names) > 1 or names == ["jit"] for names in equations(jax, op))}
    assert several == SEVERAL


def equations(jax: Any, op: str) -> Iterator[list[str]]:
    """The equations of the examples of arrays of f64."""
    cases = [case for _, case in example_cases(BUILTIN, BUILTIN[op])]
    some = ("f64", "i32", "bool")
    plain = [c for c in cases if all(isinstance(t, TensorType) and t.dtype in some for t in (*c.operands, *c.results))]
    for case in plain if op in SEVERAL else few(plain, 1):
        shapes = [jax.ShapeDtypeStruct(t.shape, numpy_dtype(np, t.dtype)) for t in case.operands]
        yield [str(e.primitive) for e in jax.make_jaxpr(jax_function(case))(*shapes).jaxpr.eqns]


SEVERAL = {
    *("cond", "expm", "expm_frechet", "select_and_gather_add", "select_and_scatter_add"),
    *("difference", "retract"),  # of integers
}
"""The primitives that JAX has in several steps."""
