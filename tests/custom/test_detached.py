"""Own ops that read detached values: the types that these hide follow from the patterns, where the rest tells the variables."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.custom.making import body, definition, read, using
from tidu_cli.api import evaluate, linearize, load, resolve, transpose
from tidu_cli.errors import DocumentError, MissingRuleError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document

SOFTPLUS = load(Path(__file__).parents[2] / "samples" / "softplus.json")


def cut_loose(document: Document, *wrt: str) -> Document:
    """The linear graphs alone, by way of a file."""
    return parse_document(format_document(linearize(document, wrt, detach=True), "json"), "d")[0]


def scaled(type_: str) -> Document:
    # y = sin(x) k, with a backward graph, so that its derivative is a node; k is an input that does not move.
    forward = body("x k", [("sin", 0), ("mul", 2, 1)], {"y": 3})
    backward = body("x k y@-1", [("cos", 0), ("mul", 3, 1), ("mul", 4, 2)], {"x@-1": 5, "k@-1": None})
    return read(
        using(
            {"scaled": definition({"x": type_, "k": type_}, {"y": type_}, forward, backward=backward)}, "scaled", "f64[3]", "f64[3]"
        )
    )


@pytest.mark.parametrize(("document", "wrt"), [(SOFTPLUS, ["x"]), (scaled("f64[...]"), ["a"]), (scaled("f64[n]"), ["a"])])
def test_a_detached_derivative_is_transposed_as_if_it_were_not(document: Document, wrt: list[str]) -> None:
    alone = transpose(cut_loose(document, *wrt))
    whole = transpose(linearize(document, wrt))
    given = {"x": [0.1, 0.2, 0.3], "a": [0.1, 0.2, 0.3], "b": [3.0, 2.0, 1.0], "y@-1": 1.0, "z0@-1": [1.0, 2.0, 3.0]}
    (expected,) = evaluate(whole, {k: v for k, v in given.items() if k in _keys(whole)}).values()
    linked = resolve(document, alone)
    (cotangent,) = evaluate(linked, {k: v for k, v in given.items() if k in _keys(linked)}).values()
    np.testing.assert_array_equal(cotangent, expected)


def _keys(document: Document) -> set[str]:
    return {str(i.key) for graph in document.graphs for i in graph.inputs}


def test_what_nothing_tells_is_named() -> None:
    # The tangent of T[...] is of f64 for an f64, and for an i64.
    with pytest.raises(MissingRuleError, match=r"graph 'f@1', node 0 \(scaled\.jvp\): its rule needs the type of a detached value"):
        transpose(cut_loose(scaled("T[...]"), "a"))


def test_a_type_that_does_not_fit_is_told() -> None:
    loose = json.loads(format_document(cut_loose(SOFTPLUS, "x"), "json"))
    loose["graphs"][0]["inputs"][0]["type"] = "f32[3]"
    message = r"graph 'f@1', node 0 \(softplus\.jvp\): takes the inputs and outputs of softplus, and tangents f64\[3\]"
    with pytest.raises(DocumentError, match=message):
        read(loose)
