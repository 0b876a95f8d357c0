"""A document that is written as ONNX is read as the document that it was; a model that others changed is read as a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from onnx import helper

from tests.graphs.strategies import REAL, documents
from tests.onnx.writing.lowered import LONG
from tests.onnx.writing.written import by_reference, checked_model, require_round_trip
from tests.tiers import examples, few
from tidu_cli.adapters.onnx.read import claimed
from tidu_cli.adapters.onnx.writing.lowering import NoMeaningError
from tidu_cli.adapters.onnx.writing.model import MARK, onnx_bytes, onnx_files
from tidu_cli.checking.numeric.trials import example_cases, one_node_document
from tidu_cli.errors import DocumentError, MissingRuleError, TransformError, TypeRuleError
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.graph import Document
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

SAMPLES = Path(__file__).parents[3] / "samples"
FILES = [
    f
    for f in sorted(SAMPLES.rglob("*.json"))
    if not {"invalid", "plugin"} & set(f.parts) and f.name != "index.json" and b'"graphs"' in f.read_bytes()
]
CANNOT = ("complex", "times", "record", "detached", "ONNX")
"""Words of the reasons for which a document is not written."""


def derived(document: Document) -> Iterator[Document]:
    """The document; its derivatives of the first and second order, as far as it has any."""
    yield document
    wrt = [i.key for i in document.free_inputs if i.type.inexact]
    try:
        first = linearize(document, wrt)
        yield first
        backward = transpose(first)
        yield from (backward, materialize(backward))
        second = linearize(backward, wrt)
        yield from (second, transpose(second))
    except (TransformError, MissingRuleError, TypeRuleError, DocumentError):
        return


def written(document: Document) -> tuple[onnx.ModelProto | None, str]:
    """The model of a document, or why there is none."""
    try:
        return checked_model(document), ""
    except NoMeaningError as error:
        return None, str(error)


def require(document: Document) -> bool:
    """Whether it can be written. Raises AssertionError unless it is then read as it was."""
    model, reason = written(document)
    if model is None:
        assert any(word in reason for word in CANNOT), reason
        assert "\n" not in reason
        return False
    assert claimed(model) is not None
    require_round_trip(document, model)
    return True


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(SAMPLES)))
def test_samples_and_their_derivatives(file: Path) -> None:
    document, _ = parse_document(file.read_bytes(), file.name)
    for made in derived(document):
        require(made)


def test_most_samples_can_be_written() -> None:
    documents = [parse_document(file.read_bytes(), file.name)[0] for file in FILES]
    assert sum(map(require, documents)) > 0.6 * len(documents)


@pytest.mark.parametrize("op", [p.name for p in BUILTIN if not p.domain.records])
def test_examples_and_their_derivatives(op: str) -> None:
    """In one float dtype, as which it is makes no difference here, and primary in all. Derivatives of what is long are as long."""
    seen = set()
    for example, case in few(example_cases(BUILTIN, BUILTIN[op]), 1 if op in LONG else 2):
        document = one_node_document(case)
        if require(document) and op not in LONG and id(example) not in seen and any(t.inexact for t in case.operands):
            seen.add(id(example))
            for made in derived(document):
                require(made)


@settings(max_examples=examples(60, check=22), deadline=None)
@given(documents(makers=REAL, dtypes=("f64", "f32")))
def test_documents_of_any_form(document: Document) -> None:
    for made in derived(document):
        assert require(made)


def _square() -> Document:
    return parse_document((SAMPLES / "cube.json").read_bytes(), "cube")[0]


def _renamed(model: onnx.ModelProto) -> None:
    model.graph.node[0].op_type = "Add"


def _more(model: onnx.ModelProto) -> None:
    model.graph.node.append(helper.make_node("Neg", [model.graph.output[0].name], ["more"]))


def _unclaimed(model: onnx.ModelProto) -> None:
    del model.graph.node[0].metadata_props[:]


def _told(model: onnx.ModelProto) -> None:
    model.metadata_props[0].value = model.metadata_props[0].value.replace('"nodes":2', '"nodes":1')


def _damaged(model: onnx.ModelProto) -> None:
    model.metadata_props[0].value = "{"


@pytest.mark.parametrize("change", [_renamed, _more, _unclaimed, _told, _damaged])
def test_what_others_changed_is_read_as_a_model(change: Callable[[onnx.ModelProto], None]) -> None:
    """The claims are then not believed: values are those of the model."""
    model = checked_model(_square())
    assert model.metadata_props[0].key == MARK
    change(model)
    document, format_ = parse_document(model.SerializeToString(), "model")
    assert format_ == "onnx"
    given = {i.name: np.asarray(3.0) for i in model.graph.input}
    assert document != _square()
    again = checked_model(document)
    np.testing.assert_array_equal(by_reference(again, given)[0], by_reference(model, given)[0])


def test_large_constants_lie_beside_the_model(tmp_path: Path) -> None:
    """Beyond the limit of protobuf, here of 1,000 bytes; and a file alone is refused then."""
    document = _of_constant(2000)
    data, beside = onnx_files(document, "f.onnx.data", most=1000)
    assert len(beside) >= 2000 * 8
    (tmp_path / "f.onnx").write_bytes(data)
    (tmp_path / "f.onnx.data").write_bytes(beside)
    onnx.checker.check_model(str(tmp_path / "f.onnx"), full_check=True)
    from tidu_cli.api import load

    assert onnx_bytes(load(tmp_path / "f.onnx")) == onnx_bytes(document)
    assert onnx_files(document, "f.onnx.data") == (onnx_bytes(document), b"")


def _of_constant(n: int) -> Document:
    case = BUILTIN.case(
        "constant", BUILTIN.parse_attrs("constant", {"value": {"type": f"f64[{n}]", "data": list(range(n))}}), None, []
    )
    return one_node_document(case)
