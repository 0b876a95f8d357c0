"""Loops and branches within one another, and the same written out: all ways to derive and run them agree, and so do the two."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

import tidu_cli
from tests.fuzz.choices import Choices
from tests.fuzz.inputs import engines, programs
from tests.fuzz.target import Target
from tests.graphs.interpret import evaluate
from tests.graphs.loops import F64, I32, document, graph, node
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.keys import Key

Pair = tuple[int, int]
Graph = dict[str, Any]

OPS = (("sin", 1), ("cos", 1), ("tanh", 1), ("logistic", 1), ("mul", 2))
"""Smooth, values stay between -1 and 1, and none is the negative of another: sums that are 0 have derivatives of rounding alone."""


class Flow:
    """The nodes of a graph of n inputs, as they come."""

    def __init__(self, n: int = 2) -> None:
        self.nodes: list[Any] = []
        self.n = n

    def add(self, op: str, *args: int, results: int = 1, **attrs: Any) -> int:
        """Append a node. Gives the number of its first result."""
        self.nodes.append(node(op, *args, **attrs))
        self.n += results
        return self.n - results

    def constant(self, type_: str, value: float) -> int:
        return self.add("constant", value={"type": type_, "data": [value]})

    def closed(self, a: int, b: int) -> Graph:
        """The graph of two numbers that gives two."""
        return graph({"a": F64, "b": F64}, self.nodes, {"a": a, "b": b})


Block = Callable[[Flow, int, int], Pair]
"""What appends nodes for two numbers, and gives two."""


def block(choices: Choices, depth: int) -> tuple[Block, Block]:
    """What appends a random loop or branch, of two such in it, or a few plain nodes; and what appends the same written out."""
    kind = choices.pick(("plain", "scan", "while", "cond", "slices")) if depth else "plain"
    if kind == "plain":
        plain = partial(_plain, [(*choices.pick(OPS), choices.below(2)) for _ in range(1 + choices.below(3))])
        return plain, plain
    (one, one_out), (two, two_out) = block(choices, depth - 1), block(choices, depth - 1)
    n = 1 + choices.below(3)

    def written_out(flow: Flow, a: int, b: int) -> Pair:
        ends: list[int] = []
        for _ in range(n if kind != "cond" else 0):
            a, end = two_out(flow, *one_out(flow, a, b))
            ends.append(end)
            b = b if kind == "slices" else end
        return one_out(flow, a, b) if kind == "cond" else (a, reduce(partial(flow.add, "add"), ends) if kind == "slices" else b)

    return partial(_looped, kind, n, one, two), written_out


def _plain(ops: list[tuple[str, int, int]], flow: Flow, a: int, b: int) -> Pair:
    for op, n, to in ops:
        result = flow.add(op, *(a, b)[:n] if n == 2 or to else (b,))
        a, b = (result, b) if to else (a, result)
    return a, b


def _looped(kind: str, n: int, one: Block, two: Block, flow: Flow, a: int, b: int) -> Pair:
    inner = Flow(3 if kind == "while" else 2)
    if kind == "cond":
        other = Flow()
        branches = [other.closed(*two(other, 0, 1)), inner.closed(*one(inner, 0, 1))]
        chosen = flow.add("lt", flow.add("sub", a, flow.constant(F64, 1.0)), a)  # it is, and nobody knows before
        first = flow.add("cond", chosen, a, b, results=2, branches=branches)
        return first, first + 1
    if kind == "while":
        counted, zero = inner.add("add", 0, inner.constant(I32, 1)), flow.constant(I32, 0)
        out_a, out_b = two(inner, *one(inner, 1, 2))
        inputs = {"k": I32, "a": F64, "b": F64}
        body = graph(inputs, inner.nodes, {"k": counted, "a": out_a, "b": out_b})
        test = graph(inputs, [node("constant", value={"type": I32, "data": [n]}), node("lt", 0, 3)], {"go": 4})
        first = flow.add("while", zero, a, b, results=3, cond_consts=0, body_consts=0, condition=test, body=body)
        return first + 1, first + 2
    body = inner.closed(*two(inner, *one(inner, 0, 1)))
    if kind == "scan":
        first = flow.add("scan", a, b, results=2, length=n, num_consts=0, num_carry=2, body=body)
        return first, first + 1
    xs = flow.add("broadcast_in_dim", b, shape=[n], broadcast_dimensions=[])
    first = flow.add("scan", a, xs, results=2, length=n, num_consts=0, num_carry=1, reverse=True, body=body)
    return first, flow.add("reduce_sum", first + 1, axes=[0])


def make(choices: Choices) -> bytes:
    """Two documents, a line each: loops nested to depth 3, and the same written out."""
    flows = [Flow(), Flow()]
    return b"\n".join(document(flow.closed(*add(flow, 0, 1))) for flow, add in zip(flows, block(choices, 3), strict=True))


def judge(case: bytes) -> str:
    """Hold the loops against all that programs are held to, native code, and second derivatives of what is written out."""
    looped, plain = case.split(b"\n")
    verdict = programs.judge(looped)
    engines.judge(b"native\n" + looped)
    rng = np.random.default_rng(zlib.crc32(case))
    at = {Key(name): np.asarray(rng.uniform(0.1, 0.9)) for name in "ab"}
    for order in (0, 1, 2):
        outputs, due = (_outputs(data, order, at) for data in (looped, plain))
        for key, value in due.items():
            np.testing.assert_allclose(outputs[key], value, rtol=1e-9, atol=1e-9, err_msg=f"{key} is another written out")
    return verdict


def _outputs(data: bytes, order: int, at: programs.Values) -> programs.Values:
    made = parse_document(data, "f")[0]
    return evaluate(tidu_cli.derivative(made, ["a"], order=order) if order else made, at)


LOOPS = Target("loops", ".loops", make, judge)
