"""Every primitive that has NumPy source gives what the plain interpreter gives, in every dtype; others are refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from tests.c.test_primitives import documented
from tests.c.test_primitives import examples as examples_of
from tests.python_source.running import alike, expected, run
from tidu_cli.adapters.python_source.module import written_as
from tidu_cli.checking.numeric.trials import example_cases
from tidu_cli.errors import DocumentError
from tidu_cli.lax.vocabulary import BUILTIN

REFUSED = {
    "record", "field", "difference", "retract", "schur", "expm", "expm_frechet", "logm", "logm_frechet", "sqrtm",
    "solve_sylvester", "polar",
}  # fmt: skip
"""What has no NumPy source."""


def is_written(case):
    try:
        return written_as(case, BUILTIN)
    except DocumentError:
        return False


def examples(name):
    return examples_of(name, is_written)


def check(cases, operands):
    document = documented(cases)
    values = [x for xs in operands for x in xs]
    made, due = run(document, values), expected(document, values)
    assert list(made) == list(due)
    for key in due:
        alike(made[key], due[key], key)


@pytest.mark.parametrize("name", [p.name for p in BUILTIN if p.name not in REFUSED])
def test_examples(name):
    cases, operands = zip(*examples(name), strict=True)
    check(cases, operands)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_has_no_source_is_refused_by_name(name):
    for _, case in list(example_cases(BUILTIN, BUILTIN[name]))[:1]:
        with pytest.raises(DocumentError, match=rf"^graph '{name}': (node 0 \({name}\): )?.*NumPy source (has no|is written of)"):
            written_as(case, BUILTIN)


_EXACT = "add sub mul div neg max min and or select_n exp sin sqrt reshape transpose slice concatenate"
"""What NumPy has one function for."""


@pytest.mark.parametrize("op", _EXACT.split())
def test_arithmetic_that_is_the_same_keeps_its_bits(op):
    cases, operands = zip(*examples(op), strict=True)
    document = documented(cases)
    values = [x for xs in operands for x in xs]
    made, due = run(document, values), expected(document, values)
    for key in due:
        assert np.asarray(made[key]).tobytes() == np.asarray(due[key]).tobytes(), key
