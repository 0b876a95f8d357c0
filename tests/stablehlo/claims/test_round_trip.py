"""A document that is written as StableHLO is read as the document that it was; a module that others changed is read as a module."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.graphs.strategies import REAL, documents
from tests.stablehlo.claims.written import document_of, in_this_process, is_written, require_round_trip, some
from tests.tiers import campaign, examples, few
from tidu_cli.adapters.stablehlo.text import UnwrittenError
from tidu_cli.checking.numeric.trials import example_cases, one_node_document
from tidu_cli.errors import DocumentError, MissingRuleError, TransformError, TypeRuleError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

SAMPLES = Path(__file__).parents[3] / "samples"
FILES = [
    f
    for f in sorted(SAMPLES.rglob("*.json"))
    if not {"invalid", "plugin"} & set(f.parts)
    and f.name.count(".") == 1
    and f.name != "index.json"
    and b'"graphs"' in f.read_bytes()
]
"""Documents, each in one of its forms."""


def derived(document: Document) -> Iterator[Document]:
    """The document; its derivatives of the first order, as far as it has any; in a campaign those of the second, too.

    Those of the second are made of primitives that are tried by themselves.
    """
    yield document
    wrt = [i.key for i in document.free_inputs if i.type.inexact]
    try:
        first = linearize(document, wrt)
        yield first
        backward = transpose(first)
        yield backward
        if campaign():
            second = linearize(backward, wrt)
            yield from (materialize(backward), second, transpose(second))
    except (TransformError, MissingRuleError, TypeRuleError, DocumentError):
        return


REASONS = ("no function of JAX", "detached", "JAX takes")
"""Words of the reasons for which a document is not written."""


def refusal(document: Document, *formats: str) -> str:
    """Why it cannot be written, if that is so. Raises AssertionError unless it is read as it was otherwise."""
    try:
        require_round_trip(document, *formats)
    except UnwrittenError as error:
        return str(error)
    return ""


def require(document: Document, *formats: str) -> bool:
    """Whether it can be written. Raises AssertionError as above, and for other reasons than those that are known."""
    reason = refusal(document, *formats)
    assert not reason or any(word in reason for word in REASONS), reason
    assert "\n" not in reason
    return not reason


@pytest.fixture(autouse=True)
def _parsed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidu_cli.adapters.stablehlo.files.parsed", in_this_process)


@pytest.mark.parametrize("file", few(FILES, 8), ids=lambda f: str(f.relative_to(SAMPLES)))
def test_samples_and_their_derivatives(file: Path) -> None:
    document, _ = parse_document(file.read_bytes(), file.name)
    written = [require(made) for made in derived(document)]
    assert written[0] == ("detached" not in file.name)


LONG = frozenset({"regularized_incomplete_beta", "regularized_incomplete_beta_grad", "regularized_incomplete_beta_inv"})
"""JAX takes minutes to lower their second derivatives, which are of many orders, and half a minute the first one of the second."""


OPS = [p.name for p in BUILTIN]


@pytest.mark.parametrize("op", OPS)
def test_examples_and_their_derivatives(op: str) -> None:
    """All in one document; derivatives in one float dtype, as which it is makes no difference here, and examples in all."""
    examples = list(example_cases(BUILTIN, BUILTIN[op]))
    inexact = {id(example): case for example, case in examples if any(t and t.inexact for t in case.operands)}
    once = some(inexact.values(), 1)
    cases = written = [*once, *(case for case in some([case for _, case in examples], 1 if once else 2) if case not in once)]
    if refusal(document_of(cases), "mlir"):
        written = [case for case in cases if is_written(case)]
        if not written:
            assert not require(one_node_document(cases[0]))
            return
        assert require(document_of(written), "mlir")
    if once := [case for case in once if case in written]:
        orders = None if op not in LONG else 2 if campaign() and op != "regularized_incomplete_beta_grad" else 1
        every = list(islice(derived(document_of(once)), orders))
        if not campaign() and len(every) > 1:  # the JVP or the VJP, by turns, each of which holds the document
            every = [every[1:][OPS.index(op) % len(every[1:])]]
        for made in every:
            require(made, "mlirbc")


@pytest.mark.campaign
@pytest.mark.parametrize("op", sorted(LONG))
def test_derivatives_that_take_long(op: str) -> None:
    cases = [case for _, case in example_cases(BUILTIN, BUILTIN[op]) if all(t and t.dtype in ("f64", "i64") for t in case.operands)]
    for made in islice(derived(document_of(cases)), 1, None):
        require(made, "mlirbc")


@settings(max_examples=examples(25, check=10), deadline=None)
@given(documents(makers=REAL, dtypes=("f64", "f32")))
def test_documents_of_any_form(document: Document) -> None:
    for made in derived(document):
        assert require(made)


def test_bytes_are_the_same_for_the_same_document() -> None:
    document, _ = parse_document((SAMPLES / "mlp.json").read_bytes(), "mlp")
    for format_ in ("mlir", "mlirbc"):
        assert format_document(document, format_) == format_document(document, format_)
