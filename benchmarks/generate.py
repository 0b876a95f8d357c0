"""Large graphs of scalars to measure with: random DAGs and chains of any number of nodes, the same for the same arguments.

    python benchmarks/generate.py dag 100000 dag.msgpack

Every node counts: the one output depends on all of them. Every value but the DAG's final sum stays within ±4,
at whatever depth, for inputs within ±1.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import CaseTable, Document, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN

SCALAR = TensorType("f64")
ARITHMETIC = ("add", "mul", "sub")
BOUNDED = ("sin", "cos", "tanh", "logistic")
"""Functions with values within ±1."""

BOUND = 4.0
"""What may be added or multiplied up to; beyond it, a value goes through a bounded function first."""

WIDTH = 64
"""The inputs of a DAG, and how many of its values wait for a reader at any time."""


def dag(n: int, seed: int = 0) -> Document:
    """A random DAG of `n` nodes. Each reads one value that none has read yet, and binary ones also any earlier value.

    Raises ValueError if n is too small for its width.
    """
    if n < WIDTH:
        raise ValueError(f"a DAG takes at least {WIDTH} nodes, got {n}")
    draw = random.Random(seed)
    graph = _Scalars(WIDTH)
    unread = list(range(WIDTH))
    for _ in range(n - WIDTH + 1):
        slot = draw.randrange(WIDTH)
        left, right = unread[slot], draw.randrange(graph.builder.n_values)
        unread[slot] = graph.random_node(draw, left, right)
    total = unread[0]
    for value in unread[1:]:
        total = graph.append("add", total, value)
    return graph.finished(f"dag_{n}", total)


def chain(n: int, seed: int = 0) -> Document:
    """A chain of `n` nodes: each reads the one before it, and binary ones also the input."""
    draw = random.Random(seed)
    graph = _Scalars(1)
    value = 0
    for _ in range(n):
        value = graph.random_node(draw, value, 0)
    return graph.finished(f"chain_{n}", value)


SHAPES = {"dag": dag, "chain": chain}


class _Scalars:
    """A graph of f64 scalars under construction, with a bound on the magnitude of each value. Inputs are to be within ±1."""

    def __init__(self, n_inputs: int) -> None:
        self.cases = CaseTable()
        self.builder = GraphBuilder(self.cases, [Input(Key(f"x{k}"), SCALAR) for k in range(n_inputs)])
        self.bound = [1.0] * n_inputs
        self._code: dict[str, int] = {}

    def random_node(self, draw: random.Random, x: int, y: int) -> int:
        """Append a bounded function of x, or with even chances, as far as bounds allow, a sum, difference or product of x and y."""
        op = draw.choice(ARITHMETIC)
        bound = self.bound[x] * self.bound[y] if op == "mul" else self.bound[x] + self.bound[y]
        if bound <= BOUND and draw.random() < 0.5:
            self.bound.append(bound)
            return self.append(op, x, y)
        self.bound.append(1.0)
        return self.append(draw.choice(BOUNDED), x)

    def finished(self, name: str, output: int) -> Document:
        """The document, with output `y`."""
        graph = self.builder.build(name, [Output(Key("y"), output, SCALAR)])
        return Document((graph,), self.cases)

    def append(self, op: str, *args: int) -> int:
        """Append a node. Gives its value."""
        code = self._code.get(op)
        if code is None:
            case = BUILTIN.case(op, BUILTIN.parse_attrs(op, {}), None, [SCALAR] * len(args))
            code = self._code[op] = self.cases.intern(case)
        return self.builder.append(code, args)


def main() -> None:
    """Write a graph to a file: JSON or msgpack by its suffix."""
    parser = argparse.ArgumentParser(description="Write a large graph of scalars.")
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("nodes", type=int)
    parser.add_argument("out", type=Path, help="a .json or .msgpack file")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    format_ = "json" if chosen.out.suffix == ".json" else "msgpack"
    chosen.out.write_bytes(format_document(SHAPES[chosen.shape](chosen.nodes, chosen.seed), format_))


if __name__ == "__main__":
    main()
