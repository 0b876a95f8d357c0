"""Templates outlive documents: what a rule emits for a case is recorded once by a set of primitives."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

from tests.graphs.sketch import Value, function, key
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.families import changed
from tidu_cli.rules.recording import templates
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose


def example() -> Document:
    return function("f", {"x": "f64[2]"}, lambda x: {"y": x.sketch.apply("tanh", x * x) * 2.0})


def gradient(document: Document) -> bytes:
    primitives = replace(BUILTIN)
    return format_document(transpose(linearize(document, [key("x")], primitives=primitives), primitives=primitives), "msgpack")


def test_a_second_document_with_the_same_cases_records_nothing() -> None:
    written = format_document(transpose(linearize(example(), [key("x")])), "msgpack")
    with patch.object(templates, "Trace", side_effect=AssertionError("a rule is called again")):
        assert format_document(transpose(linearize(example(), [key("x")])), "msgpack") == written


def test_how_many_are_kept_makes_no_difference() -> None:
    expected = gradient(example())
    with patch.object(templates, "KEPT", 1):
        assert gradient(example()) == expected
    with patch.object(templates, "KEPT_NODES", -1):
        assert gradient(example()) == expected


def test_another_rule_makes_another_template() -> None:
    def doubled(node: templates.JVP) -> list[templates.Term]:
        (tangent,) = node.tangents
        assert tangent is not None
        return [tangent + tangent]

    def body(x: Value) -> dict[str, Value]:
        return {"y": x.sketch.apply("neg", x)}

    document = function("f", {"x": "f64[]"}, body)
    usual = linearize(document, [key("x")])
    primitives = replace(BUILTIN, primitives={p.name: changed(p, jvp=doubled) if p.name == "neg" else p for p in BUILTIN})
    assert [usual.head.case(0).op, linearize(document, [key("x")], primitives=primitives).head.case(0).op] == ["neg", "add"]
