"""Documents written as ONNX and read back: the same documents, by claims that are verified."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from tests.onnx.evaluators import by_reference
from tidu_cli import api
from tidu_cli.checking.numeric.examples import example_cases, one_node_document
from tidu_cli.errors import TiduError
from tidu_cli.formats.onnx.writing.body import NoMeaningError
from tidu_cli.formats.onnx.writing.model import MARK, onnx_bytes, onnx_files
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document
from tidu_cli.lax.builtin import BUILTIN
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("samples/conformance/valid/*"), *ROOT.glob("samples/*.json"), *ROOT.glob("samples/*/*.json")])

REFUSED = {
    "attrs": "complex",
    "complex": "complex",
    "constants": "complex",
    "detached": "reads a detached value",
    "detached_output": "reads a detached value",
    "events": "has no place in ONNX",
    "record_types": "has no place in ONNX",
    "segment": "has no place in ONNX",
    "structural_zeros": "complex",
    "times": "knows no times",
}
"""What of the conformance set has no meaning in ONNX, by the names of files, and what is said of it."""


def same(document: Document) -> None:
    """Raises AssertionError unless a document comes back byte for byte, and the checker has nothing against its model."""
    data = onnx_bytes(document)
    onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
    back, found = parse_document(data, "model")
    assert found == "onnx"
    assert onnx_bytes(back) == data
    assert format_document(back, "json") == format_document(document, "json")


def _document(path: Path) -> Document | None:
    try:
        return parse_document(path.read_bytes(), path.name)[0]
    except TiduError:  # values, libraries and the like
        return None


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_documents_come_back(path: Path) -> None:
    document = _document(path)
    if document is None:
        return
    reason = REFUSED.get(path.name.split(".")[0])
    if reason is None:
        same(document)
        return
    with pytest.raises(NoMeaningError, match=reason):
        onnx_bytes(document)


def examples() -> Iterator[tuple[str, Document]]:
    """A document of each example of a primitive, in f32 and what else it takes."""
    for primitive in BUILTIN:
        for k, (_, case) in enumerate(example_cases(BUILTIN, primitive)):
            yield f"{primitive.name}-{k}", one_node_document(case)


EXAMPLES = dict(examples())


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_and_their_derivatives_come_back(name: str) -> None:
    document = EXAMPLES[name]
    try:
        onnx_bytes(document)
    except NoMeaningError:
        return  # which test_lowerings lists
    same(document)
    for key in [i.key for i in document.head.inputs]:
        try:
            linear = linearize(document, [key])
        except TiduError:
            continue  # of integers that choose, say
        derivatives = [linear]
        try:
            derivatives.append(transpose(linear))
        except TiduError:
            continue  # of what is zero, or has no transpose
        for derivative in derivatives:
            try:
                onnx_bytes(derivative)
            except NoMeaningError:
                continue
            same(derivative)


def test_a_model_that_another_program_changed_is_read_as_it_is() -> None:
    document = api.trace(lambda x, y: x * y + 1, x="f64[2]", y="f64[2]")
    model = onnx.load_from_string(onnx_bytes(document))
    product = next(node for node in model.graph.node if node.op_type == "Mul")
    product.op_type = "Sub"  # and still claims to be mul
    back = parse_document(model.SerializeToString(), "model")[0]
    values = {"x": np.array([5.0, 1.0]), "y": np.array([2.0, 4.0])}
    (found,) = api.evaluate(back, values).values()
    np.testing.assert_array_equal(found, values["x"] - values["y"] + 1)


def test_claims_that_cannot_be_followed_are_left_alone() -> None:
    document = api.trace(np.sin, "f32[]")
    for text in ("", "{", "[]", '{"tidu":1,"graphs":[{}]}', '{"tidu":1,"graphs":[]}', "null"):
        model = onnx.load_from_string(onnx_bytes(document))
        next(p for p in model.metadata_props if p.key == MARK).value = text
        back = parse_document(model.SerializeToString(), "model")[0]
        assert [back.head.case(0).op, back.head.n_nodes] == ["sin", 1]


def test_without_claims_values_are_the_same() -> None:
    document = api.linearize(api.trace(lambda x, y: np.sin(x * y) + x, x="f64[3]", y="f64[3]", output="z"), "x")
    model = onnx.load_from_string(onnx_bytes(document))
    del model.metadata_props[:]
    for node in model.graph.node:
        del node.metadata_props[:]
    back = parse_document(model.SerializeToString(), "model")[0]
    values = {"x": np.array([0.5, 1.0, 2.0]), "y": np.array([2.0, 1.5, 0.1]), "x@1": np.array([1.0, -1.0, 0.5])}
    found, expected = api.evaluate(back, values), api.evaluate(document, values)
    np.testing.assert_array_equal(found["z@1"], next(iter(expected.values())))
    assert set(by_reference(model.SerializeToString(), values)) == set(found)


def test_large_constants_lie_beside_the_model(tmp_path: Path) -> None:
    weights = np.arange(1000.0)
    document = api.trace(lambda x: (x * weights).sum(), x="f64[1000]")
    data, beside = onnx_files(document, "model.onnx.data", most=1000)
    (tmp_path / "model.onnx").write_bytes(data)
    (tmp_path / "model.onnx.data").write_bytes(beside)
    assert len(beside) == 8000 and len(data) < 2000
    values = {"x": np.ones(1000)}
    session = ReferenceEvaluator(str(tmp_path / "model.onnx"))
    (found,) = session.run(None, values)
    assert found == weights.sum()
    back = api.load(tmp_path / "model.onnx")
    assert api.evaluate(back, values)["y"] == weights.sum()
    assert format_document(back, "json") == format_document(document, "json")
