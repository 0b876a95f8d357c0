"""Graphs at random of all that the machine rounds as NumPy does: scalars and small arrays of all dtypes, in loops and branches."""

from __future__ import annotations

from random import Random

import numpy as np

from tests.runtime.graphs import Sketch
from tests.runtime.native.test_opcodes import cases, edges
from tidu_cli.adapters.native import integers, opcodes
from tidu_cli.adapters.native.machine import TABLE
from tidu_cli.adapters.native.opcodes import COMPLEXES
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import spelled
from tidu_cli.lax.arrays.structural import numpy_dtype

ROUNDED_OTHERWISE = opcodes.CALLING - {"rem", "nextafter"} | integers.OPERATIONS | {"integer_pow 3", "integer_pow 4"}
EXACT = [s for s in TABLE if s.op not in ROUNDED_OTHERWISE and not (s.op == "mul" and s.result in COMPLEXES)]
BY_DTYPE = {}
for signature in EXACT:
    for dtype in set(signature.operands):
        BY_DTYPE.setdefault(dtype, []).append(signature)
DTYPES = sorted(BY_DTYPE)
SHAPES = ["", "", "", "", "3", "2,2"]
FOLDS = ["reduce_max", "reduce_min", "reduce_sum"]


class Anything:
    """A graph in the making, of inputs of these types, `depth` deep in others."""

    def __init__(self, random: Random, types: list[str], depth: int = 0) -> None:
        self.random, self.depth = random, depth
        self.sketch = Sketch(**{f"x{k}": t for k, t in enumerate(types)})

    def type_of(self, value: int) -> str:
        return str(self.sketch.types[value])

    def any_of(self, type_: str) -> int:
        """A value of a type: one that there is, else one made of another, else a constant."""
        there = [v for v in range(len(self.sketch.types)) if self.type_of(v) == type_]
        if there and self.random.random() < 0.9:
            return self.random.choice(there[-6:])
        dtype, shape = type_[:-1].split("[")
        sizes = [int(n) for n in shape.split(",") if n]
        numbers = [v for v, t in enumerate(self.sketch.types) if not t.shape and not (t.complex and dtype not in COMPLEXES)]
        if numbers and self.random.random() < 0.7:
            made = self.sketch.apply("convert_element_type", self.random.choice(numbers[-6:]), new_dtype=dtype)
        else:
            made = self.sketch.apply("constant", value={"type": f"{dtype}[]", "data": _json(self.random.choice(edges(dtype)))})
        return self.sketch.apply("broadcast_in_dim", made, shape=sizes, broadcast_dimensions=[]) if sizes else made

    def some(self) -> int:
        return self.random.randrange(max(0, len(self.sketch.types) - 8), len(self.sketch.types))

    def compute(self) -> None:
        type_ = self.sketch.types[self.some()]
        choice = self.random.choice(BY_DTYPE[type_.dtype])
        op, attrs, n = self.random.choice(cases(choice))
        self.sketch.apply(op, *[self.any_of(str(type_.with_dtype(t))) for t in choice.operands[:n]], **attrs)

    def fold(self) -> None:
        arrays = [v for v, t in enumerate(self.sketch.types) if t.shape and t.dtype != "bool" and not t.complex]
        if arrays:
            value = self.random.choice(arrays)
            op = self.random.choice(FOLDS[: 2 if self.sketch.types[value].dtype[0] == "f" else 3])
            self.sketch.apply(op, value, axes=[0])

    def move(self) -> None:
        arrays = [v for v, t in enumerate(self.sketch.types) if t.shape]
        if arrays:
            value = self.random.choice(arrays)
            rank = len(self.sketch.types[value].shape)
            self.sketch.apply("transpose", value, permutation=list(range(rank))[::-1])
            self.sketch.apply("rev", value, dimensions=[0])

    def _inner(self, types: list[str], results: list[str], n_nodes: int) -> ClosedGraph:
        """A closed graph of these inputs whose first outputs are of these types, and some more of any."""
        inner = Anything(self.random, types, self.depth + 1)
        inner.grow(n_nodes)
        values = [inner.any_of(t) for t in results]
        return ClosedGraph.of(inner.sketch.graph(**{f"y{k}": v for k, v in enumerate(values)}))

    def scan(self) -> None:
        length = self.random.choice([0, 1, 3, 3])
        consts, carry = [self.some() for _ in range(2)], [self.some() for _ in range(2)]
        items = [f"{self.random.choice(DTYPES)}[{self.random.choice(['', '', '2'])}]" for _ in range(2)]
        stacks = [self.any_of(t.replace("[", f"[{length}{',' if t[-2] != '[' else ''}")) for t in items]
        carried = [self.type_of(v) for v in carry]
        seen = [f"{self.random.choice(DTYPES)}[]", self.type_of(self.some())]
        body = self._inner([*map(self.type_of, consts), *carried, *items], [*carried, *seen], self.random.randrange(6))
        reverse = self.random.random() < 0.5
        self.sketch.apply("scan", *consts, *carry, *stacks, length=length, num_consts=2, num_carry=2, reverse=reverse, body=body)

    def loop(self) -> None:
        const, carry = self.some(), [self.any_of("i32[]"), self.some(), self.some()]
        start = self.sketch.apply("constant", value={"type": "i32[]", "data": [self.random.randrange(-2, 3)]})
        types = ["i32[]", *map(self.type_of, carry[1:])]
        test = Sketch(**{f"x{k}": t for k, t in enumerate(types)})
        end = test.apply("constant", value={"type": "i32[]", "data": [3]})
        condition = ClosedGraph.of(test.graph(y=test.apply("lt", 0, end)))
        inner = Anything(self.random, [self.type_of(const), *types], self.depth + 1)
        inner.grow(self.random.randrange(6))
        one = inner.sketch.apply("constant", value={"type": "i32[]", "data": [1]})
        values = [inner.sketch.apply("add", 1, one), *[inner.any_of(t) for t in types[1:]]]
        body = ClosedGraph.of(inner.sketch.graph(**{f"y{k}": v for k, v in enumerate(values)}))
        self.sketch.apply("while", const, start, *carry[1:], cond_consts=0, body_consts=1, condition=condition, body=body)

    def branch(self) -> None:
        index = self.any_of(self.random.choice(["bool[]", "i32[]", "u8[]", "i64[]"]))
        operands = [self.some() for _ in range(3)]
        results = [self.type_of(self.some()), f"{self.random.choice(DTYPES)}[]"]
        n = 2 if self.type_of(index) == "bool[]" else self.random.choice([1, 2, 4])
        types = [*map(self.type_of, operands)]
        branches = [self._inner(types, results, self.random.randrange(5)) for _ in range(n)]
        self.sketch.apply("cond", index, *operands, branches=branches)

    def grow(self, n_nodes: int) -> None:
        nested = [self.scan, self.loop, self.branch] if self.depth < 2 else []
        for _ in range(n_nodes):
            self.random.choice([*[self.compute] * 12, self.fold, self.move, *nested])()


def _json(number: np.generic) -> list[object]:
    """The numbers of a literal."""
    if np.iscomplexobj(number):
        return [*_json(number.real), *_json(number.imag)]
    plain = number.item()
    return [spelled(plain) if isinstance(plain, float) else plain]


def any_graph(random: Random):
    """A graph, and values of its inputs, edges mostly."""
    types = [f"{random.choice(DTYPES)}[{random.choice(SHAPES)}]" for _ in range(random.randrange(1, 6))]
    made = Anything(random, types)
    made.grow(random.randrange(1, 15))
    sketch = made.sketch
    graph = sketch.graph(**{f"y{k}": k for k in range(len(sketch.types))})
    values = {}
    for k, tensor in enumerate(sketch.types[: len(types)]):
        choices = edges(tensor.dtype)
        picked = [random.choice(choices) if random.random() < 0.6 else random.choice(choices[:4]) for _ in range(tensor.size)]
        values[Key(f"x{k}")] = np.array(picked, numpy_dtype(np, tensor.dtype)).reshape(tensor.shape)
    return graph, values
