"""C with sizes as arguments: compiled once, it gives at each size what the document of that size gives."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from tests.c.compiled import alike, compiled
from tests.c.test_primitives import REFUSED, documented
from tests.c.test_programs import CC
from tests.lax.test_batching import drawn
from tests.sizes.test_primitives import WITHOUT, cases, derived
from tests.tiers import few
from tidu_cli.api.evaluation import evaluate
from tidu_cli.checking.numeric.sampling import of_operand, with_diagonal
from tidu_cli.errors import DocumentError, MissingRuleError, UndecidedSizeError
from tidu_cli.formats.write import format_document
from tidu_cli.graph.open_sizes import open_names
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.specializing import specialized

NUMBERS = (1, 2, 3, 7)
MOST = 3000
"""As many elements of inputs are compared."""


def agree_at(document, run, number, values, **tolerance):
    """Compare what C gives with what evaluation of the document of this size gives."""
    fixed = specialized(document, dict.fromkeys(open_names(document), number), BUILTIN)
    given = values(fixed)
    if sum(x.size for x in given) > MOST:
        return
    with np.errstate(all="ignore"):
        expected = evaluate(fixed, {str(i.key): x for i, x in zip(fixed.head.inputs, given, strict=True)}, engine="numpy")
    made = run(*given, sizes=[number] * len(open_names(document)))
    for value, output in zip(made, fixed.head.outputs, strict=True):
        alike(value, expected[str(output.key)], output.type, (number, output.key), **tolerance)


def is_written(document):
    try:
        return bool(format_document(document, "c"))
    except DocumentError:
        return False


def orders(case):
    """The node alone, its reverse derivative and a forward one of that, as far as there are any that C is written of."""
    document = documented([case])
    for order in (0, 1, 2) if any(i.type.inexact for i in document.free_inputs) else (0,):
        try:
            made = derived(document, order)
        except (MissingRuleError, UndecidedSizeError):
            return
        if not is_written(made):
            return
        yield made


@CC
@pytest.mark.parametrize("name", [p.name for p in BUILTIN if p.name not in {*REFUSED, *WITHOUT}])
def test_primitives_and_their_derivatives(name, tmp_path):
    defined = bool(BUILTIN[name].evaluation.definition)  # by hundreds of operations, which compile for long
    for example, case, _ in few(cases(name), 1 if defined else 3):

        def values(fixed, example=example, n_operands=len(case.operands)):
            rng, given = np.random.default_rng(3), []
            for k, i in enumerate(fixed.head.inputs):
                x = drawn(rng, i.type, of_operand(example.within, k) if k < n_operands else (-2.0, 2.0))
                given.append(np.asarray(with_diagonal(x, of_operand(example.diagonals, k)) if k < n_operands else x))
            return given

        for order, document in enumerate(islice(orders(case), 2 if defined else 3)):
            run = compiled(document, tmp_path, "-O0")
            for number in NUMBERS:
                agree_at(document, run, number, values, least=bool(order))
