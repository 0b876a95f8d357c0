"""What is written as StableHLO computes what it stands for, by other programs: XLA, primitive by primitive, and IREE."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings

from tests.graphs import interpret
from tests.graphs.strategies import REAL, documents, seeds
from tests.graphs.templates import apply
from tests.sizes.opened import of_fixed_sizes
from tests.stablehlo.claims.test_round_trip import FILES, SAMPLES
from tests.stablehlo.claims.written import arguments, by_iree, by_xla, document_of, is_written, leaves_of, some
from tests.tiers import examples, few
from tidu_cli.adapters.stablehlo.text import arrays, pytree
from tidu_cli.checking.numeric.trials import draw, example_cases, of_operand
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Case, Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import dtype_name, numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.evaluate import evaluate
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

DTYPES = ("bool", "i64", "f32", "f64", "c128")
"""A dtype of each kind: each needs its own machine code, which takes most of the time."""

FEW = 16
"""So many units in the last place of the greatest number may be lost."""

NEAR = {
    "log1p": (64, "a rational approximation of XLA's own"),
    "lgamma": (64, "XLA's series of f32 has fewer terms"),
    "igammac": (64, "differences of near numbers in f32"),
    "regularized_incomplete_beta": (256, "a continued fraction in f32"),
    "igamma_grad_a": (256, "a series whose terms cancel"),
    "solve_sylvester": (512, "rounding times the condition of the equations, 22 in f32"),
    "expm": (512, "other orders of Padé's approximation, squared more often"),
}
"""Primitives that XLA computes less exactly, by how many units, and why."""


CANCELS = frozenset({"lgamma"})
"""Sums of terms of about 10 (C. Lanczos, 1964), of which near a zero little is left: units are then those of 1."""


def eps(dtype: Any) -> float:
    """The unit in the last place of 1."""
    return float(ml_dtypes.finfo(dtype).eps) if dtype.kind in "fcV" else 0.0


def require_close(array: Any, expected: Any, units: int, what: str, coarse: float = 0.0, least: float = 0.0) -> None:
    """Raises AssertionError unless arrays agree but for so many units in the last place of the greatest number, or of `least`.

    `coarse` is a unit that is larger than that of the arrays' dtype.
    """
    assert (array.dtype, array.shape) == (expected.dtype, expected.shape), what
    few = units * max(unit, coarse) if (unit := eps(array.dtype)) else 0
    wide = [v.astype("f4") if v.dtype.kind == "V" else v for v in (array, expected)]
    scale = np.abs(wide[1][np.isfinite(wide[1])]).max(initial=least) if few else 0
    np.testing.assert_allclose(*wide, few, few * scale, err_msg=what)


@pytest.mark.parametrize("op", [p.name for p in BUILTIN])
def test_examples_have_the_same_values(op: str) -> None:
    """All of a primitive in one module."""
    rng = np.random.default_rng(0)
    cases: list[Case] = []
    operands: list[list[Any]] = []
    examples = (
        (example, case)
        for example, case in example_cases(BUILTIN, BUILTIN[op])
        if all(isinstance(t, TensorType) and t.dtype in DTYPES for t in (*case.operands, *case.results))
    )
    for example, case in some(examples, 1):
        if is_written(case):
            cases.append(case)
            operands.append([np.asarray(draw(rng, t, of_operand(example.within, k))) for k, t in enumerate(case.operands)])
    if not cases:
        return
    results = iter(by_xla(format_document(document_of(cases), "mlir").decode(), [x for xs in operands for x in xs]))
    with np.errstate(all="ignore"):
        for case, given in zip(cases, operands, strict=True):
            for expected in apply(case, given):
                units, least = NEAR.get(op, (FEW, ""))[0], float(op in CANCELS)
                require_close(next(results), np.asarray(expected), units, str(case)[:400], least=least)


def coarsest(document: Document) -> float:
    """The unit in the last place of the coarsest dtype of any value, also of those that are converted later."""
    dtypes = {leaf.dtype for case in document.cases.cases for t in case.results for _, leaf in arrays(t)}
    return max((eps(numpy_dtype(np, dtype)) for dtype in dtypes), default=0.0)


def derivatives(file: str, wrt: str) -> Document:
    """The gradient of a sample, in one graph; in f32 if it has tanh, for which IREE has no code in f64."""
    data = (SAMPLES / file).read_bytes()
    document, _ = parse_document(data.replace(b"f64", b"f32") if b"tanh" in data else data, file)
    return materialize(transpose(linearize(document, [Key(wrt)])))


def values_of(document: Document, seed: int = 0) -> tuple[dict[Key, Any], list[Any]]:
    """Values of the inputs, and the arrays that the outputs are for these."""
    rng = np.random.default_rng(seed)
    given = {i.key: pytree(i.type, lambda _, leaf: np.asarray(draw(rng, leaf, (0.1, 0.9)))) for i in document.free_inputs}
    values = evaluate(document.head, given)
    return given, [x for o in document.head.outputs for x in leaves_of(o.type, values[o.key])]


@pytest.mark.parametrize(("file", "wrt"), [("f.json", "x"), ("mlp.json", "W1"), ("logistic_map.json", "x")])
@pytest.mark.parametrize("by", [by_xla, by_iree])
@pytest.mark.parametrize("format_", few(["mlir", "mlirbc"], 1))
def test_gradients(by: Any, format_: str, file: str, wrt: str) -> None:
    """Of the worked example, of a network and of a loop."""
    document = derivatives(file, wrt)
    given, expected = values_of(document)
    module = format_document(document, format_)
    results = by(module if format_ == "mlirbc" else module.decode(), arguments(document, given))
    for x, y in zip(results, expected, strict=True):
        require_close(x, y, FEW, str(by))


def literals() -> Sequence[Any]:
    """Arrays of all dtypes: of numbers at their edges, of NaNs that have a payload, of nothing, and of no axes."""
    rng = np.random.default_rng(0)
    constants: list[Any] = []
    for name in ("bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "bf16", "f4", "f8", "c8", "c16"):
        dtype = np.dtype(ml_dtypes.bfloat16 if name == "bf16" else name)
        raw = rng.integers(0, 2 if name == "bool" else 256, (3, 40 * dtype.itemsize), np.uint8).view(dtype)
        constants += [raw, raw[0, 0], raw[:0], np.broadcast_to(raw[1, 1], (40, 2)), raw[:1, :1]]
        if dtype.kind in "fV":
            constants.append(np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype))
    return constants


def test_constants_are_the_same_bit_for_bit() -> None:
    arrays = [np.ascontiguousarray(a).reshape(np.shape(a)) for a in literals()]
    texts = [f"{dtype_name(a.dtype)}[{','.join(map(str, a.shape))}]" for a in arrays]
    attrs = [{"value": {"type": text, "data": a.tobytes()}} for text, a in zip(texts, arrays, strict=True)]
    document = document_of([BUILTIN.case("constant", BUILTIN.parse_attrs("constant", a), None, []) for a in attrs])
    for format_ in ("mlir", "mlirbc"):
        module = format_document(document, format_)
        for array, expected in zip(by_xla(module if format_ == "mlirbc" else module.decode(), []), arrays, strict=True):
            assert (array.dtype, array.shape, array.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())
        assert format_document(parse_document(module, "module")[0], "json") == format_document(document, "json")


@pytest.mark.parametrize("file", few(FILES, 16), ids=lambda f: str(f.relative_to(SAMPLES)))
def test_samples_have_the_same_values(file: Path) -> None:
    """Among them records, times, operations of their own, and several graphs."""
    document, _ = parse_document(file.read_bytes(), file.name)
    if document.detached:
        return
    made = materialize(of_fixed_sizes(document))
    given, expected = values_of(made)
    results = by_xla(format_document(made, "mlir").decode(), arguments(made, given))
    for x, y in zip(results, expected, strict=True):
        require_close(x, y, FEW, file.name, coarsest(made))


@settings(max_examples=examples(15, check=10), deadline=None)
@given(documents(makers=REAL, dtypes=("f64", "f32")), seeds)
def test_documents_have_the_same_values(document: Document, seed: int) -> None:
    """Of several graphs that share inputs, with bindings; and of their gradients. The head's results are the last ones."""
    rng = np.random.default_rng(seed)
    for made in (document, transpose(linearize(document, [i.key for i in document.free_inputs]))):
        inputs = {i.key: draw(rng, i.type, (-2, 2)) for i in made.free_inputs}
        results = by_xla(format_document(made, "mlir").decode(), arguments(made, inputs))[-len(made.head.outputs) :]
        for output, x in zip(made.head.outputs, results, strict=True):
            expected = interpret.evaluate(made, inputs, [output.key])[output.key]
            require_close(x, np.asarray(expected), 2 * FEW, str(output.key), coarsest(made))
