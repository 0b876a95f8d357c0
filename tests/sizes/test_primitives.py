"""Every primitive: what is derived at an open size, and then made a number, is what is derived at that number."""

from __future__ import annotations

import numpy as np
import pytest

import tidu_cli
from tests.c.test_primitives import documented
from tests.lax.test_batching import drawn
from tests.sizes.opened import opened
from tests.tiers import few
from tidu_cli.checking.numeric.trials import example_cases, of_operand, with_diagonal
from tidu_cli.errors import EvaluationError, MissingRuleError, TransformError, UndecidedSizeError
from tidu_cli.graph.select import movable_inputs
from tidu_cli.graph.types import TensorType, parse_type
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.sizing import specialized

NUMBERS = (1, 2, 3, 7, 64)
WITHOUT = {
    *("constant", "dynamic_update_slice", "size", "record", "field"),
    *("scan", "cond", "while", "linear_solve", "root", "fixed_point"),
}
"""Whose examples have no size that may be open alone; loops and branches are tested by themselves."""
REFUSED = {
    "svd": "its vectors depend on whether there are as many rows as columns",
    "lu": "it depends on whether there are as many rows as columns",
    "qr": "it depends on whether there are as many rows as columns",
    "cofactors": "there are none where there are as many directions as rows",
    "det": "a second derivative has that of cofactors",
    "select_and_gather_add": "windows of an open size",
}
"""What has no derivative at some open sizes, and why."""
UNSTEADY = {"logm", "logm_frechet"}
"""SciPy's results differ by a rounding from call to call."""
IN_STEPS = {"cumprod", "cummax", "cummin", "cumlogsumexp", "reduce_prod"}
"""Whose derivatives along an open axis go element by element, and along others by steps that double: roundings differ."""


def derived(document, order):
    wrt = movable_inputs(document) if order else []
    if order:
        document = tidu_cli.transpose(tidu_cli.linearize(document, wrt))
    if order == 2:
        document = tidu_cli.linearize(document, wrt)
    return tidu_cli.materialize(document)


def values(document, example, n_operands):
    rng, given = np.random.default_rng(3), {}
    for k, i in enumerate(document.free_inputs):
        x = drawn(rng, i.type, of_operand(example.within, k) if k < n_operands else (-2.0, 2.0))
        given[str(i.key)] = with_diagonal(x, of_operand(example.diagonals, k)) if k < n_operands else x
    with np.errstate(all="ignore"):
        return tidu_cli.evaluate(document, given, engine="numpy")


def agree(name, found, due):
    assert found.keys() == due.keys()
    for key, value in due.items():
        parts = (value, found[key]) if isinstance(value, np.ndarray) else (np.zeros(0), np.zeros(0))
        if name in UNSTEADY:
            np.testing.assert_allclose(*parts, rtol=1e-13, atol=1e-13)
        elif name in IN_STEPS:  # of 64 elements at most: some 64 roundings each, of sums that may cancel
            np.testing.assert_allclose(*parts, rtol=1e-13, atol=1e-13 * np.abs(value).max(initial=0))
        else:
            np.testing.assert_array_equal(*parts)


def cases(name):
    chosen = [
        (example, case)
        for example, case in example_cases(BUILTIN, BUILTIN[name])
        if all(isinstance(t, TensorType) and t.dtype in ("f64", "c128", "i32") for t in case.operands)
    ]
    return [(example, case, number) for example, old in few(chosen, 6) for case, number in opened(old)]


@pytest.mark.parametrize("name", [p.name for p in BUILTIN if p.name not in WITHOUT])
def test_specialized_derivatives_are_those_of_specialized_graphs(name):
    refused, compared = [], 0
    for example, case, number in cases(name):
        document = documented([case])
        floats = any(i.type.inexact for i in document.free_inputs)
        for order in (0, 1, 2) if floats else (0,):
            try:
                open_one = derived(document, order)
            except (MissingRuleError, UndecidedSizeError) as error:
                refused.append(str(error))
                break
            for n in {number, *NUMBERS}:
                try:
                    fixed = specialized(document, {"N": n}, BUILTIN)
                    due = derived(fixed, order)
                except (TransformError, MissingRuleError):
                    assert n != number or order, "an example itself"
                    continue
                found = specialized(open_one, {"N": n}, BUILTIN)
                if sum(i.type.size for i in found.free_inputs) < 3000:
                    agree(name, values(found, example, len(case.operands)), values(due, example, len(case.operands)))
                    compared += 1
    assert compared
    if name not in REFUSED:
        assert refused == [error for error in refused if "has no" in error or "missing" in error], name
    assert all("\n" not in error for error in refused)


@pytest.mark.parametrize("dtype", ["i64", "f16", "bf16", "f32", "f64"])
def test_a_size_is_a_number_of_its_dtype(dtype):
    document = tidu_cli.materialize(
        documented([BUILTIN.case("size", BUILTIN.parse_attrs("size", {"expression": "N*N", "dtype": dtype}), None, [])])
    )
    (value,) = tidu_cli.evaluate(specialized(document, {"N": 181}, BUILTIN)).values()
    assert value == np.array(181**2).astype(value.dtype) and value.shape == ()
    with pytest.raises(EvaluationError, match="no input says what the size N is"):
        tidu_cli.evaluate(document)


@pytest.mark.parametrize("name", sorted(set(REFUSED) - {"select_and_gather_add"}))
def test_what_needs_a_number_is_refused_by_name(name):
    refused = []
    for _, case, _ in cases(name):
        document = documented([case])
        if not any(i.type.inexact for i in document.free_inputs):
            continue
        try:
            derived(document, 2)
        except (MissingRuleError, UndecidedSizeError) as error:
            refused.append(str(error))
    assert any("size={'N': 32} in load or specialize" in error for error in refused)


@pytest.mark.parametrize("name", ["qr", "svd", "lu"])
def test_factors_of_matrices_of_two_open_sizes(name):
    """min(M,N) columns in thin ones; derivatives of vectors depend on which is less, and those of singular values do not."""
    attrs = {"lu": {}}.get(name, {"full_matrices": False})
    document = documented([BUILTIN.case(name, BUILTIN.parse_attrs(name, attrs), None, [parse_type("f64[M,N]")])])
    assert f"[{'M,min(M,N)' if name == 'qr' else 'min(M,N)'}]" in " ".join(str(o.type) for o in document.head.outputs)
    for shape in ((3, 2), (2, 3), (1, 1)):
        x = np.random.default_rng(0).normal(size=shape)
        fixed = specialized(document, dict(zip("MN", shape, strict=True)), BUILTIN)
        for found, due in zip(*[tidu_cli.evaluate(d, {"x0": x}).values() for d in (document, fixed)], strict=True):
            np.testing.assert_array_equal(found, due)
    with pytest.raises(MissingRuleError, match=r"node 0 .* cannot decide whether .*(M .* N|N .* M); .*size=\{'.': 32\}"):
        derived(document, 1)


def test_singular_values_of_matrices_of_two_open_sizes_have_derivatives():
    document = documented([BUILTIN.case("svd", BUILTIN.parse_attrs("svd", {"compute_uv": False}), None, [parse_type("f64[M,N]")])])
    gradient = tidu_cli.materialize(tidu_cli.vjp(document, "x0"))
    for shape in ((3, 2), (2, 3)):
        x = np.random.default_rng(0).normal(size=shape)
        (found,) = tidu_cli.evaluate(gradient, {"x0": x, "y1@-1": np.ones(2)}).values()
        u, _, vh = np.linalg.svd(x, full_matrices=False)
        np.testing.assert_allclose(found, u @ vh, 1e-12, 1e-12)
