"""What `make test` tries of StableHLO where JAX is installed: an example of each primitive, written, read and run."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.graphs.templates import apply
from tests.stablehlo.claims.test_round_trip import LONG
from tests.stablehlo.claims.test_values import CANCELS, FEW, NEAR, require_close
from tests.stablehlo.claims.written import by_xla, document_of, in_this_process, is_written
from tidu_cli.checking.numeric.trials import draw, example_cases, of_operand
from tidu_cli.errors import DocumentError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.evaluate import evaluate

pytestmark = pytest.mark.sample

DTYPES = {"f64", "bool", "i32", "i64"}


def sample() -> list[tuple[Case, list[Any]]]:
    """The last example of each primitive that is of these dtypes, which has more axes than the first, and operands for it."""
    rng, examples = np.random.default_rng(0), {}
    for primitive in BUILTIN:
        for example, case in example_cases(BUILTIN, primitive):
            plain = all(isinstance(t, TensorType) and t.dtype in DTYPES for t in (*case.operands, *case.results))
            if plain and primitive.name not in LONG:
                examples[primitive.name] = (case, example)
    return [
        (case, [np.asarray(draw(rng, t, of_operand(example.within, k))) for k, t in enumerate(case.operands)])
        for case, example in examples.values()
        if is_written(case)
    ]


def require_values(results: list[Any], tried: list[tuple[Case, list[Any]]]) -> None:
    """Raises AssertionError where results are not those of these cases."""
    arrays = iter(results)
    with np.errstate(all="ignore"):
        for case, operands in tried:
            for expected in apply(case, operands):
                units, least = max(256, NEAR.get(case.op, (FEW, ""))[0]), float(case.op in CANCELS)
                require_close(np.asarray(next(arrays)), np.asarray(expected), units, str(case)[:400], least=least)


@pytest.fixture(autouse=True)
def _parsed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidu_cli.adapters.stablehlo.files.parsed", in_this_process)


def test_one_module_of_all_primitives() -> None:
    """It is read as the document that it was written of, and computes what this does."""
    tried = sample()
    assert len(tried) > 140
    document = document_of([case for case, _ in tried])
    text = format_document(document, "mlir").decode()
    assert format_document(parse_document(text.encode(), "sample")[0], "json") == format_document(document, "json")
    require_values(by_xla(text, [x for _, operands in tried for x in operands]), tried)


def test_operations_alone() -> None:
    """What is read of a module without its claim computes the same: every second primitive."""
    plain = []
    for case, operands in sample()[::2]:
        one = format_document(document_of([case]), "mlir").decode()
        unclaimed = re.sub(r' attributes \{tidu\.checksum = "[^"]*", tidu\.document = "[^"]*"\}', "", one, count=1)
        try:
            read, _ = parse_document(unclaimed.encode(), "sample.mlir")
        except DocumentError:
            continue
        values = evaluate(read.head, {i.key: x for i, x in zip(read.head.inputs, operands, strict=True)})
        require_values([values[o.key] for o in read.head.outputs], [(case, operands)])
        plain.append(case.op)
    assert len(plain) > 60
