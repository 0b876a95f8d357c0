"""Loops that cannot be reversed: what is said of them later names the node of the model, and what makes a scan of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx.parser import parse_model

import tidu_cli
from tidu_cli.adapters.onnx.contents import Choices
from tidu_cli.adapters.onnx.reading.importer import import_model
from tidu_cli.errors import NoReverseError
from tidu_cli.frozen import replace

LOOP = (
    "OUT = Loop <body = b (int64 i, bool c, float[3] v) => (bool on, float[3] w) { on = Identity (c)  w = Mul (v, x) }> (n, yes, x)"
)
BRANCHES = """z = If (which) <then_branch = t () => (float[3] inner) { LOOP },
    else_branch = e () => (float[3] other) { other = Identity (x) }>"""
UNTIL = """z = Loop <body = b (int64 i, bool c, float[3] v) => (bool on, float[3] w) {
    w = Mul (v, x)  s = ReduceSum <keepdims = 0> (w)  on = Less (s, s0) }> ("", yes, x)"""


def model(nodes: str, name: str) -> Any:
    """The sum of what some nodes give as z, of which a loop has this name."""
    proto = parse_model(
        f"""<ir_version: 10, opset_import: ["": 18]> m (float[3] x, int64 n, bool which, float s0) => (float y)
        {{ yes = Constant <value = bool {{1}}> ()  {nodes}  y = ReduceSum <keepdims = 0> (z) }}"""
    )
    for node in proto.graph.node:
        for inner in (node, *(n for a in node.attribute for n in a.g.node)):
            inner.name = name if inner.op_type == "Loop" else ""
    return proto


@pytest.mark.parametrize(
    ("nodes", "name", "said"),
    [
        (LOOP.replace("OUT", "z"), "steps", "Loop 'steps' runs as often as 'n' says, and is a scan after "),
        (LOOP.replace("OUT", "z"), "", "the Loop of 'z' runs as often as 'n' says, and is a scan after "),
        (
            BRANCHES.replace("LOOP", LOOP.replace("OUT", "inner")),
            "steps",
            "Loop 'steps' runs as often as 'n' says, and is a scan after ",
        ),
        (UNTIL, "until", "Loop 'until' runs as often as 'x', 's0' says"),
    ],
)
def test_what_cannot_be_reversed_is_the_loop_of_the_model(nodes: str, name: str, said: str) -> None:
    """Also where it stacks nothing, within a branch, and after the document was composed."""
    proto = model(nodes, name)
    document = import_model(proto, Choices()).document
    way = "load_onnx(MODEL, set={'n': 4})" if said.endswith("after ") else ""
    for loss in (document, tidu_cli.compose(document, tidu_cli.formula("loss = y * y", y="f32[]"))):
        with pytest.raises(NoReverseError) as error:
            tidu_cli.grad(loss, "x")
        assert str(error.value).endswith(f"; {said}{way}")
    if way:
        gradient = tidu_cli.grad(import_model(proto, Choices(values={"n": np.array(4)})).document, "x")
        (slope,) = tidu_cli.evaluate(gradient, {"x": np.full(3, 2, "f4"), "which": True}).values()
        assert slope.tolist() == [80] * 3  # of x**5


LOOPS = [3, "no", {"a": 1}, [3], [{}], [{"name": ["a"], "inputs": 3}], [{"inputs": [[]], "number": 4}]]


@pytest.mark.parametrize("loops", LOOPS)
def test_what_a_document_says_of_loops_may_be_anything(loops: Any) -> None:
    document = tidu_cli.trace(lambda x: tidu_cli.while_loop(lambda v: v < 9, lambda v: v * 2, x), x="f64[]")
    meta = {k: {"onnx": {"loops": loops}} for k in range(document.head.n_nodes)}
    with pytest.raises(NoReverseError, match="has no transpose"):
        tidu_cli.grad(replace(document, graphs=(replace(document.head, node_meta=meta),)), "x")
