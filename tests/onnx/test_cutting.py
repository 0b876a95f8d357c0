"""Cutting a model: with the type of the value that becomes an input, nothing before it is read."""

from __future__ import annotations

import pytest
from onnx.parser import parse_model

from tidu_cli.adapters.onnx.contents import Choices
from tidu_cli.adapters.onnx.reading.importer import import_model
from tidu_cli.adapters.onnx.reading.node import RefusedError
from tidu_cli.errors import UnknownNameError
from tidu_cli.graph.types import TensorType

TEXT = """<ir_version: 10, opset_import: ["": 18]>
m (string[n] text, float[2] x, bool which) => (float[2] y)
{
    clean = StringNormalizer (text)
    seen = TfIdfVectorizer <mode: string = "TF", min_gram_length: int = 1, max_gram_length: int = 1, max_skip_count: int = 0,
        ngram_counts: ints = [0], ngram_indexes: ints = [0, 1], pool_strings: strings = ["a", "b"]> (clean)
    twice = Add (x, x)
    y = If (which) <
        then_branch = a () => (float[2] first) { first = Mul (twice, seen) },
        else_branch = b () => (float[2] twice) { }>
}"""

SEEN = {"seen": TensorType("f32", (2,))}


def test_what_is_before_the_cut_is_not_read() -> None:
    document = import_model(parse_model(TEXT), Choices(types=SEEN, cuts=("seen",))).document
    assert sorted(str(i.key) for i in document.head.inputs) == ["seen", "which", "x"]


def test_without_the_cut_it_is_refused() -> None:
    with pytest.raises(RefusedError, match=r"RandomNormalLike.*cut=NAME, input_types="):
        import_model(
            parse_model('<ir_version: 10, opset_import: ["": 18]> m (float[3] x) => (float[3] y) { y = RandomNormalLike (x) }'),
            Choices(),
        )


def test_a_cut_at_nothing_says_what_there_is() -> None:
    with pytest.raises(UnknownNameError, match=r"'sen' to cut at; did you mean 'seen'\?"):
        import_model(parse_model(TEXT), Choices(types={"sen": SEEN["seen"]}, cuts=("sen",)))
