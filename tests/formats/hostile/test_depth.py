"""Graphs within graphs: what is written, is read; what would not be, is refused before the file that it would replace is gone."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tidu_cli
from tests.formats.plain import read
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.errors import DocumentError
from tidu_cli.formats.write import format_document
from tidu_cli.graph.closed import MAX_GRAPH_NESTING

TYPE = "f64[2,1]"
LIMITS = {"json": MAX_GRAPH_NESTING, "msgpack": MAX_GRAPH_NESTING, "onnx": 31}


def loop(body):
    return {"op": "scan", "inputs": [0], "attrs": {"length": 1, "num_consts": 0, "num_carry": 1, "body": body}}


def branch(body):
    other = {"inputs": [{"key": "c", "type": TYPE}], "nodes": [], "outputs": [{"key": "c", "value": 0}]}
    return {"op": "cond", "inputs": [1, 0], "attrs": {"branches": [other, body]}}


def nested(depth, within):
    """A document of graphs within graphs, the innermost of which has a constant."""
    zero = {"op": "constant", "inputs": [], "attrs": {"value": {"type": "bool[]", "data": [True]}}}
    first = [] if within is loop else [zero]

    def around(nodes):
        return {"inputs": [{"key": "c", "type": TYPE}], "nodes": nodes, "outputs": [{"key": "c", "value": len(nodes)}]}

    two = {"op": "constant", "inputs": [], "attrs": {"value": {"type": TYPE, "data": [2.0, 3.0]}}}
    graph = around([two, {"op": "mul", "inputs": [0, 1]}])
    for _ in range(depth):
        graph = around([*first, within(graph)])
    return {"tidu": 1, "graphs": [{"name": "f", **graph}]}


@pytest.mark.parametrize("within", [loop, branch])
@pytest.mark.parametrize("format_", LIMITS)
def test_at_the_limit_it_is_read_and_beyond_it_refused(tmp_path, format_, within):
    if format_ == "onnx":
        pytest.importorskip("onnx")
    path = tmp_path / f"f.{format_}"
    document = read(nested(LIMITS[format_], within))
    tidu_cli.save(document, path)
    again = tidu_cli.load(path)
    assert format_document(again, "json") == format_document(document, "json")
    assert np.array_equal(tidu_cli.compile(again)(c=[[1.0], [1.0]])["c"], [[2.0], [3.0]])
    before = path.read_bytes()
    beyond = nested(LIMITS[format_] + 1, within)
    with pytest.raises(DocumentError, match=r"graph 'f(@1)?', node .* graphs within graphs nest deeper than \d+ levels"):
        tidu_cli.save(deeper_by_one() if format_ != "onnx" else read(beyond), path)
    assert path.read_bytes() == before
    if format_ != "onnx":
        with pytest.raises(DocumentError, match="graphs within graphs nest deeper than 64 levels"):
            read(json.loads(json.dumps(beyond)))


def deeper_by_one():
    """A derivative that is deeper than what it is of: that of a loop runs in a branch of its own."""
    x = np.ones((2, 1))
    return tidu_cli.linearize(tidu_cli.trace(nest(tidu_cli.while_loop, MAX_GRAPH_NESTING), x, name="f"), "x")


def nest(loop, depth):
    """A function of loops within loops."""

    def f(x):
        if depth == 0:
            return x * 2.0
        within = nest(loop, depth - 1)
        if loop is tidu_cli.scan:
            return loop(lambda c, _: (within(c), None), x, None, length=1)[0]
        return loop(lambda x: x.sum() < 9, within, x) if loop is tidu_cli.while_loop else loop(x.sum() < 9, within, abs, x)

    return f


@pytest.mark.check
@pytest.mark.parametrize("loop", [tidu_cli.scan, tidu_cli.while_loop, tidu_cli.cond])
def test_functions_may_nest_as_deep_as_files(loop):
    """What is traced can be derived, and what is too deep is refused where it is traced, far beyond the limit, too."""
    document = tidu_cli.trace(nest(loop, MAX_GRAPH_NESTING), TYPE, name="f")
    assert tidu_cli.linearize(document, "x").graphs
    for depth in (MAX_GRAPH_NESTING + 1, 300):
        with pytest.raises(BuildError, match=r"test_depth.py:\d+: graphs within graphs nest deeper than 64 levels, .* write the"):
            tidu_cli.trace(nest(loop, depth), TYPE, name="f")
