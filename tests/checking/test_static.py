"""static: each kind of finding, and none where nothing is wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.checking.sets import SAMPLES, applied, changed, sample
from tests.graphs.sketch import F, Mask, Sketch, T, Value, document, function, op
from tidu_cli.checking.static import findings
from tidu_cli.graph.graph import CaseTable, Document
from tidu_cli.graph.keys import Key
from tidu_cli.lax.vocabulary import BUILTIN, vocabulary
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.compose import detach
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose


def texts(doc: Document, *, serious: bool = True, primitives: PrimitiveSet | None = None) -> list[str]:
    return [f.text for f in findings(doc, primitives or vocabulary(doc.cases)) if f.serious == serious]


def linear_document(
    mask: Mask, *, name: str = "mul", key: str = "x@1", output: str = "y@1", pass_number: int = 1, operands: tuple[str, ...] = "xt"
) -> Document:
    """f(x) = x x, and a linear graph of one node, whose operands are x or the tangent t."""
    cases = CaseTable()
    f = Sketch({"x": "f64[]"}, cases=cases)
    primal = f.build("f", {"y": f.inputs[0] * f.inputs[0]})
    g = Sketch({key: "f64[]"}, cases=cases, number=1)
    made = g.apply(name, *({"x": f.inputs[0], "t": g.inputs[0]}[which] for which in operands), mask=mask)
    doc = document(primal, g.build("f@1", {output: made}, linear=pass_number))
    return replace(doc, passes=dict.fromkeys(doc.used_passes(), "sha256:" + "00" * 32))


def test_nothing_is_wrong_with_what_is_right() -> None:
    assert texts(linear_document((F, T))) == []
    assert texts(linear_document((F, T)), serious=False) == []


def test_an_active_operand_that_no_tangent_reaches() -> None:
    """In a graph that is not linear: of linear ones readers see it."""
    doc = linear_document((T, F))
    doc = replace(doc, graphs=(doc.graphs[0], replace(doc.graphs[1], linear=None)))
    assert "graph 'f@1', node 0 (mul): input 0 is active, but no tangent reaches it" in texts(doc)


def test_a_linear_node_that_is_linear_in_one_operand_at_a_time() -> None:
    (text,) = texts(linear_document((T, T), operands=("t", "t")))
    assert text.startswith("graph 'f@1', node 0 (mul): not known to be linear in its active inputs: missing transpose rule for mul")


def test_a_linear_node_that_is_not_linear() -> None:
    (text,) = texts(linear_document((T,), name="exp", operands=("t",)))
    assert text == ("graph 'f@1', node 0 (exp): not known to be linear in its active inputs: missing transpose rule for exp")
    assert texts(linear_document((F, T)), primitives=changed("mul", transpose=None)) != []


def test_keys_of_linear_graphs() -> None:
    assert "graph 'f@1': 'x' is not a tangent or cotangent of pass 1, in a linear graph" in texts(linear_document((F, T), key="x"))
    assert texts(linear_document((F, T), output="y@2")) == [
        "graph 'f@1': 'y@2' is not a tangent or cotangent of pass 1, in a linear graph"
    ]
    assert len(texts(linear_document((F, T), pass_number=2))) == 2
    assert texts(linear_document((F, T), key="x@-1")) == []


def test_dead_nodes_and_unused_inputs() -> None:
    def body(x: Value, y: Value) -> Value:
        op("sin")(x)  # dead
        return x * x

    doc = function("f", {"x": "f64[]", "y": "f64[]"}, body)
    assert texts(doc) == []
    assert texts(doc, serious=False) == [
        "graph 'f': no output depends on input 'y'",
        "graph 'f', node 0 (sin): no output depends on it",
    ]


def test_a_value_that_a_later_graph_needs_is_not_dead() -> None:
    doc = linearize(applied("sin", "f64[]"), [Key("x0")])
    assert [g.name for g in doc.graphs] == ["f", "f@1.residual", "f@1"]
    assert texts(doc, serious=False) == []


def test_results_of_which_one_is_needed() -> None:
    def body(x: Value) -> Value:
        return x.sketch.apply_all("split", x, sizes=(1, 2), axis=0)[1]

    assert texts(function("f", {"x": "f64[3]"}, body), serious=False) == []


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_the_samples_and_their_derivatives(path: Path) -> None:
    doc = sample(path.stem)
    assert list(findings(doc, vocabulary(doc.cases))) == []
    wrt = [i.key for i in doc.head.inputs if i.type.inexact]
    forward = linearize(doc, wrt)
    reverse = transpose(forward)
    second = linearize(reverse, wrt)
    for derived in (forward, reverse, second, transpose(second), transpose(reverse), materialize(second), materialize(reverse)):
        assert texts(derived) == []
        # Inputs stay declared, needed or not; so does what only a map that was transposed needs.
        assert all("no output depends on input" in text or ".residual'" in text for text in texts(derived, serious=False))


def test_detached_documents_are_checked_as_far_as_they_say() -> None:
    rosenbrock = sample("rosenbrock")
    doc = linearize(rosenbrock, [i.key for i in rosenbrock.head.inputs])
    alone = detach(doc, 1)
    assert alone.detached
    assert list(findings(alone, BUILTIN)) == []
