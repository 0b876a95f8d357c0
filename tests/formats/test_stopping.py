"""Values of any document through which no derivative goes: values stay, and the derivative is that of them held fixed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidu_cli as td
from tidu_cli.errors import DocumentError, TypeRuleError, UnknownNameError
from tidu_cli.formats.stopping import stopped


def f(x: Any, w: Any) -> Any:
    a = np.sin(x * w)
    b = np.sort(a * x)
    return {"y": np.sum(a * b + x), "b": b, "x too": x}


DOCUMENT = td.trace(f, x="f64[3]", w="f64[3]")
VALUES = {"x": np.array([0.3, -1.0, 2.0]), "w": np.array([1.0, 0.5, -2.0])}
A = np.sin(VALUES["x"] * VALUES["w"])
NODES = [case.op for case, _ in DOCUMENT.head.nodes()]
HELD = {
    "x": lambda x, w, held: np.sum(np.sin(held * w) * np.sort(np.sin(held * w) * held) + held),
    "w": lambda x, w, held: np.sum(np.sin(x * held) * np.sort(np.sin(x * held) * x) + x),
    "b": lambda x, w, held: np.sum(np.sin(x * w) * held + x),
    "y": lambda x, w, held: np.sum(held),
    f"node {NODES.index('sin')}": lambda x, w, held: np.sum(held * np.sort(held * x) + x),
}
"""The sum y, in which the values of a name are held."""

AT = {"x": VALUES["x"], "w": VALUES["w"], "b": np.sort(A * VALUES["x"]), "y": np.ones(3), f"node {NODES.index('sin')}": A}


@pytest.mark.parametrize("name", HELD)
def test_derivatives_are_those_of_values_that_are_held(name: str) -> None:
    document = stopped(DOCUMENT, [name])
    assert {key: x.tolist() for key, x in td.evaluate(document, VALUES).items()} == {
        key: x.tolist() for key, x in td.evaluate(DOCUMENT, VALUES).items()
    }
    held = td.trace(HELD[name], x="f64[3]", w="f64[3]", held="f64[3]")
    expected = td.evaluate(td.grad(held, ["x", "w"]), VALUES | {"held": AT[name]})
    slopes = td.evaluate(td.grad(document, ["x", "w"], "y"), VALUES)
    for key, slope in expected.items():
        np.testing.assert_allclose(slopes[key], slope, 1e-12, err_msg=key)


def test_several_and_those_of_files(tmp_path: Path) -> None:
    td.save(DOCUMENT, tmp_path / "f.msgpack")
    both = td.load(tmp_path / "f.msgpack", stop=["x", "w"])
    assert not any(x.any() for x in td.evaluate(td.grad(both, ["x", "w"], "y"), VALUES).values())
    with pytest.raises(DocumentError, match=r"f\.msgpack: graph 'f': has no value 'bb' to stop derivatives at; did you mean 'b'\?"):
        td.load(tmp_path / "f.msgpack", stop="bb")


@pytest.mark.parametrize("name", ["node 99", "node x", "", "node -1"])
def test_what_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(UnknownNameError, match=r"has no value '.*' to stop derivatives at"):
        stopped(DOCUMENT, [name])


def test_what_has_derivatives_is_made_one_graph_first() -> None:
    linear = td.linearize(DOCUMENT, "x")
    with pytest.raises(TypeRuleError, match=r"in a document of one graph; make it one first: materialize\(\)"):
        stopped(linear, ["x"])
    assert next(case.op for case, _ in stopped(td.materialize(linear), ["x"]).head.nodes()) == "stop_gradient"


@pytest.mark.parametrize("part", [{"value": 3}, {"value": ["h"]}, "h", {"value": "h"}])
def test_names_in_meta_may_be_anything(part: Any) -> None:
    from tidu_cli.frozen import replace

    marked = replace(DOCUMENT, graphs=(replace(DOCUMENT.head, node_meta={0: {"any": part}, 1: None}),))
    if part == {"value": "h"}:
        document = stopped(marked, ["h"])
        assert document.head.node_meta[0] == {"any": part} and document.head.case(1).op == "stop_gradient"
    else:
        with pytest.raises(UnknownNameError):
            stopped(marked, ["h"])
