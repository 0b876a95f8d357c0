"""Every primitive that has C gives what NumPy gives, in every dtype that it takes; the others are refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from tests.c.compiled import alike, compiled
from tests.graphs.templates import apply
from tests.lax.test_batching import drawn
from tests.programs import needs
from tests.tiers import few
from tidu_cli.adapters.c.module import written_as
from tidu_cli.checking.numeric.trials import example_cases, of_operand, with_diagonal
from tidu_cli.errors import DocumentError
from tidu_cli.graph.graph import CaseTable, Document, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN

REFUSED = {
    "svd", "pinv", "eigh", "eig", "schur", "expm", "expm_frechet", "logm",
    "logm_frechet", "sqrtm", "solve_sylvester", "polar", "cofactors", "record", "field", "difference", "retract",
}  # fmt: skip
"""What has no C."""


def documented(cases):
    """A document with a node for each of these cases, each of inputs of its own."""
    table = CaseTable(BUILTIN)
    types = [t for case in cases for t in case.operands]
    builder = GraphBuilder(table, [Input(Key(f"x{k}"), t) for k, t in enumerate(types)])
    outputs, at = [], 0
    for case in cases:
        first = builder.append(table.intern(case), range(at, at + len(case.operands)))
        at += len(case.operands)
        outputs += [Output(Key(f"y{first + k}"), first + k, t) for k, t in enumerate(case.results)]
    return Document((builder.build("all_cases", outputs),), table)


def is_written(case):
    try:
        return written_as(case, BUILTIN)
    except DocumentError:
        return False


def check(cases, operands, folder, *flags, **options):
    run = compiled(documented(cases), folder, *flags, **options)
    made = iter(run(*[x for xs in operands for x in xs]))
    with np.errstate(all="ignore"):
        for case, xs in zip(cases, operands, strict=True):
            expected = apply(case, xs)
            for value, type_ in zip(expected, case.results, strict=True):
                alike(next(made), value, type_, (case, xs))


def examples(name, is_written=is_written):
    """The examples of a primitive that are written, each with operands."""
    rng = np.random.default_rng(len(name))
    for example, case in example_cases(BUILTIN, BUILTIN[name]):
        if is_written(case):
            yield (
                case,
                [
                    with_diagonal(drawn(rng, t, of_operand(example.within, k)), of_operand(example.diagonals, k))
                    for k, t in enumerate(case.operands)
                ],
            )


@needs("cc")
@pytest.mark.parametrize("name", [p.name for p in BUILTIN if p.name not in REFUSED])
def test_examples(name, tmp_path):
    every = few(list(examples(name)), 40)
    if BUILTIN[name].evaluation.definition:  # of hundreds of operations, which are the same for halves but for their rounding
        halves = [(case, xs) for case, xs in every if case.operands[0].dtype in ("f16", "bf16")]
        every = [(case, xs) for case, xs in every if case.operands[0].dtype not in ("f16", "bf16")] + few(halves, 2)
    cases, operands = zip(*every, strict=True)
    check(cases, operands, tmp_path, "-O0")


@needs("cc")
def test_factors_of_matrices_that_are_not_finite_are_nan(tmp_path):
    """All of them, and of no other matrix: reflections alone would give some that look right."""
    x = np.random.default_rng(0).normal(size=(3, 4, 2))
    x[0, 1, 1], x[2, 3, 0] = np.inf, np.nan
    shapes = [("f64", x), ("c128", x * (1 + 2j)), ("f64", np.swapaxes(x, 1, 2)), ("f32", x.astype(np.float32))]
    cases = [BUILTIN.case("qr", BUILTIN.parse_attrs("qr", {}), None, [TensorType(dtype, y.shape)]) for dtype, y in shapes]
    check(cases, [[y] for _, y in shapes], tmp_path, "-O3")


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_has_no_c_is_refused_by_name(name):
    for _, case in list(example_cases(BUILTIN, BUILTIN[name]))[:1]:
        with pytest.raises(DocumentError, match=rf"^graph '{name}': (node 0 \({name}\): )?.*(C has no|C is written of)"):
            written_as(case, BUILTIN)
