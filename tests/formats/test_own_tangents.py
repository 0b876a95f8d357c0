"""A linear graph is linear in its inputs, also by way of other graphs and of bindings: readers refuse those that are not."""

from __future__ import annotations

import itertools
import json
from contextlib import nullcontext, suppress

import numpy as np
import pytest

import tidu_cli
from tests.cli.running import invoke
from tests.formats.plain import read
from tidu_cli.errors import DocumentError, TransformError
from tidu_cli.graph.closed import own_tangent_read

TYPE = "f64[]"


def key_of(text):
    """The key x, or x@1, in JSON."""
    name, _, number = text.partition("@")
    return {"tangent": {"of": name, "pass": int(number)}} if number else name


def graph(name, inputs, nodes, value, **more):
    declared = [{"key": key_of(key), "type": TYPE} for key in inputs]
    outputs = [{"key": key_of("y@1" if "linear" in more else "s"), "value": value}]
    return {"name": name, "inputs": declared, "nodes": nodes, "outputs": outputs, **more}


def times(residual, key="x@1", name="l"):
    """A linear graph: a value of another graph times a tangent."""
    node = {"op": "mul", "inputs": [residual, 0], "role": {"linearized": {"active_mask": [False, True]}}}
    return graph(name, [key], [node], 1, linear={"pass": 1})


def plus(name="l", keys=("x@1", "z@1")):
    """A linear graph: the sum of two tangents."""
    node = {"op": "add", "inputs": [0, 1], "role": {"linearized": {"active_mask": [True, True]}}}
    return graph(name, keys, [node], 2, linear={"pass": 1})


def sine(key, name="r"):
    return graph(name, [key], [{"op": "sin", "inputs": [0]}], 1)


def document(*graphs, **bound):
    bindings = [{"input": key_of(key), "value": list(place)} for key, place in bound.items()]
    return {"tidu": 1, "graphs": list(graphs), **({"bindings": bindings} if bindings else {})}


REFUSED = {
    "a residual": document(sine("x@1"), times([0, 1])),
    "a residual of a residual": document(sine("x@1"), graph("q", [], [{"op": "neg", "inputs": [[0, 1]]}], 0), times([1, 0])),
    "a residual that is the tangent": document(graph("r", ["x@1"], [], 0), times([0, 0])),
    "a linear graph": document(times([0, 0], "x@1", "h") | {"nodes": [], "outputs": []}, times([0, 0])),
    "a binding of a residual's input": document(sine("x@1"), sine("c", "q"), times([1, 1]), c=(0, 1)),
    "a binding of a tangent": document(sine("x@1"), plus(), **{"z@1": (0, 1)}),
    "a binding of the tangent itself": document(sine("c"), sine("x@1", "q"), times([1, 1]), **{"x@1": (0, 1)}),
    "two factors that are bound": document(sine("x@1", "q"), times([0, 1], "w@1", "h"), plus(), **{"z@1": (1, 1)}),
}
ACCEPTED = {
    "a residual": document(sine("c"), times([0, 1])),
    "another tangent's residual": document(sine("w@1"), times([0, 1])),
    "a binding of a residual's input": document(sine("c"), sine("d", "q"), times([1, 1]), d=(0, 1)),
    "a tangent that is bound": document(sine("w@1"), times([0, 1], "z@1"), **{"z@1": (0, 1)}),
    "two factors": document(sine("c", "q"), times([0, 1], "x@1", "h"), plus(), **{"z@1": (1, 1)}),
    "a graph beside": document(sine("x@1"), times([0, 0], "x@1", "h") | {"nodes": [], "outputs": []}),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_depends_on_its_own_tangent_is_refused(tmp_path, why):
    with pytest.raises(DocumentError, match=r"graph 'l': is not linear in 'x@1', as what it reads .* leave out \"linear\" and the"):
        read(REFUSED[why])
    path = tmp_path / "d.json"
    path.write_text(json.dumps(REFUSED[why]))
    result = invoke("eval", path, "--set", "x@1=2", "--set", "w@1=2")
    assert (result.exit_code, result.stderr.count("\n"), result.stdout) == (1, 1, "")


@pytest.mark.parametrize("why", ACCEPTED)
def test_what_does_not_is_read(why):
    read(ACCEPTED[why])


def refusal():
    return pytest.raises(DocumentError, match="is not linear in")


def candidates():
    """Small documents: plain values of a tangent or of another input, read or bound to inputs, by sums or products."""
    for first, second in itertools.product(["x@1", "w@1", "c"], repeat=2):
        plain = [sine(first), sine(second, "q")]
        for place in ([0, 1], [1, 1], [1, 0]):
            yield document(*plain, times(place))
            yield document(*plain, times(place, "w@1", "h"), plus(), **{"z@1": (2, 1)})
            if "z@1" not in (first, second):
                yield document(*plain, plus(), **{"z@1": place})
                yield document(*plain, plus(keys=("w@1", "z@1")), **{"z@1": place})


def test_what_is_read_is_linear_and_what_is_refused_is_not():
    """In all free tangents of linear graphs together, up to tangents that are bound to other values: by second differences."""
    counts = {True: 0, False: 0}
    for data in candidates():
        given = {"x@1": 0.7, "w@1": 0.4, "c": 0.9}
        own = {"x@1", "w@1"} & {
            text for text in given if any(key_of(text) == i["key"] for g in data["graphs"] if "linear" in g for i in g["inputs"])
        }
        plain = json.loads(json.dumps(data))
        for g in plain["graphs"]:  # the same values without the claim
            g.pop("linear", None)
            for node in g["nodes"]:
                node.pop("role", None)
        f = tidu_cli.compile(tidu_cli.materialize(read(plain), output="y@1"))
        declared = {str(k) for k in read(plain).inputs} & given.keys()
        points = ({k: v * (factor if k in own else 1) for k, v in given.items() if k in declared} for factor in (0.0, 1.0, 2.0))
        none, once, twice = (float(f(point)["y@1"]) for point in points)
        linear = bool(np.isclose(twice - once, once - none, rtol=0, atol=1e-14))
        counts[linear] += 1
        # A sum with the tangent itself by another name would be linear, too, but no graph says so.
        with nullcontext() if linear and "bindings" not in data else refusal() if not linear else suppress(DocumentError):
            read(data)
    assert min(counts.values()) > 10


def test_linking_makes_none():
    first, second = read(document(sine("x@1"))), read(document(plus()))
    with pytest.raises(TransformError, match="graph 'l': is not linear in 'x@1'"):
        tidu_cli.resolve(first, second, bind={"z@1": "s"})
    assert own_tangent_read(read(ACCEPTED["two factors"])) is None
