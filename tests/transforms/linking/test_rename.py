"""rename: what is renamed computes the same, and rename of derivatives is the derivative of what is renamed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

import tidu_cli as api
from tests.graphs.strategies import REAL, documents
from tests.tiers import examples
from tidu_cli.errors import ArgumentError, TransformError, UnknownNameError
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key


def built() -> Document:
    return api.formula("y = x * t; z = sin(x)", {"x": "f64[]", "t": "f64[]"})


def test_names_and_what_is_derived_of_them() -> None:
    vjp = api.transpose(api.linearize(built(), ["x"]))
    renamed = api.rename(vjp, keys={"x": "a", "y": "b"}, graphs={"f": "g"})
    assert [graph.name for graph in renamed.graphs] == [graph.name.replace("f", "g") for graph in vjp.graphs]
    assert [str(i.key) for i in renamed.graphs[0].inputs] == ["a", "t"]
    assert [str(o.key) for o in renamed.graphs[0].outputs] == ["b", "z"]
    assert [str(i.key) for i in renamed.head.inputs] == ["b@-1", "z@-1"]
    assert [str(o.key) for o in renamed.head.outputs] == ["a@-1"]
    at = {"a": 3.0, "t": 2.0, "b@-1": 1.0, "z@-1": 0.0}
    assert api.evaluate(renamed, at) == {"a@-1": 2.0}


def test_names_are_exchanged_at_once() -> None:
    renamed = api.rename(built(), keys={"x": "t", "t": "x"})
    assert [str(i.key) for i in renamed.head.inputs] == ["t", "x"]


@settings(max_examples=examples(2000, check=105))
@given(documents(makers=REAL, dtypes=("f64",)))
def test_rename_and_linearize_commute_and_rename_has_an_inverse(document: Document) -> None:
    """But for identities of passes, which hold names."""
    name = document.free_inputs[0].key.name
    there, back = {name: "renamed"}, {"renamed": name}
    new = api.rename(document, there, graphs={document.head.name: "other"})
    old = api.rename(new, back, graphs={"other": document.head.name})
    assert format_document(old, "json") == format_document(document, "json")
    first, second = api.linearize(new, [Key("renamed")]), api.rename(api.linearize(document, [Key(name)]), there)
    second = api.rename(second, graphs={document.head.name: "other"})
    for graph, other in zip(first.graphs, second.graphs, strict=True):
        assert (graph.name, graph.inputs, graph.outputs, graph.code, graph.args) == (
            other.name,
            other.inputs,
            other.outputs,
            other.code,
            other.args,
        )


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        ({"keys": {"u": "a"}}, UnknownNameError, r"^no input or output is named 'u' \(t, x, y, z\)$"),
        ({"graphs": {"g": "h"}}, UnknownNameError, r"^no graph is named 'g' \(f\)$"),
        ({"keys": {"x": "t"}}, TransformError, "^'t' and 'x' would both be named 't'; choose another name$"),
        ({"keys": {"y": "w", "z": "w"}}, TransformError, "^'y' and 'z' would both be named 'w'; choose another name$"),
        ({"keys": {"x": "x@1"}}, TransformError, "^input or output 'x' cannot be named 'x@1': a name is text without @"),
        ({"keys": ["x"]}, ArgumentError, "a dict from names to names"),
    ],
)
def test_what_is_refused(names: dict[str, dict[str, str]], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        api.rename(built(), **names)


def test_documents_that_read_detached_values_keep_their_inputs() -> None:
    alone = api.linearize(api.formula("sin(x)", {"x": "f64[]"}), ["x"], detach=True)
    with pytest.raises(TransformError, match="which may depend on inputs by their names; resolve it"):
        api.rename(alone, {"x": "t"})


def test_files_made_apart_are_linked() -> None:
    square, cube = (api.formula(text, {"x": "f64[]"}) for text in ("x**2", "x**3"))
    both = api.resolve(square, cube)
    assert [graph.name for graph in both.graphs] == ["f", "f.2"] and api.evaluate(both, {"x": 2.0}) == {"y": 8.0}
    linked = api.resolve(api.rename(square, {"y": "s"}, graphs={"f": "square"}), cube)
    assert api.evaluate(linked, {"x": 2.0}, output=["s", "y"]) == {"s": 4.0, "y": 8.0}
