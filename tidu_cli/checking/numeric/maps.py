"""Compiled graphs as functions of arrays, and the twins of graphs that difference quotients are taken of instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tidu_cli.checking.numeric.float_twins import FloatTwin, float_twin, holds
from tidu_cli.checking.numeric.quotients import relative
from tidu_cli.checking.numeric.sampling import Arrays, Leaf, apart, leaf_types, together
from tidu_cli.checking.numeric.unrolled import unrolled
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Document, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.types import DATETIMES, DURATIONS, INEXACT, INTEGERS, TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.plans.groups import GroupedProgram
from tidu_cli.runtime.plans.program import Program, compile_graph
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.rename import inline
from tidu_cli.transforms.materialize import materialize

CONTINUOUS = INEXACT | DURATIONS | DATETIMES
"""Dtypes of arrays that are moved for difference quotients: datetimes as durations, by their twins."""


@dataclass
class Map:
    """A compiled graph as a function of arrays. Outputs are called by their keys less the last `drop` passes: y of y@1."""

    program: Program | GroupedProgram
    drop: int = 0

    def __call__(self, arrays: Arrays) -> Arrays:
        """The outputs' arrays; inputs of which there are none are zeros."""
        values = self.program.run({i.key: together(arrays, i.key, i.type) for i in self.program.inputs})
        return apart(self.outputs, values)

    @cached_property
    def outputs(self) -> list[Output]:
        """The outputs, as they are called."""
        return [replace(o, key=Key(o.key.name, o.key.path[: len(o.key.path) - self.drop])) for o in self.program.outputs]


class Twin(Frozen, slots=False):
    """What difference quotients are taken of, and its derivative; by the keys of inputs, those that move in their place.

    `types` are those of its inputs, and `live` the outputs that it computes. A graph may be its own twin, with neither.
    `stopped` gives what more inputs have: the values that `stop_gradient` passes on, which stay as they are at a point.
    """

    f: Map
    jvp: Map
    twin_of: Mapping[Key, Key]
    types: Mapping[Leaf, TensorType]
    live: frozenset[Key] = frozenset()
    stopped: Map | None = None

    def at(self, x: Arrays) -> Arrays:
        """The point x, with the twins where their inputs are."""
        if self.stopped is not None:
            return x | self.stopped(x)
        if not self.twin_of:
            return x
        import numpy as np

        return x | {p: a.astype(numpy_dtype(np, self.types[p].dtype)) for p, a in self.of(x).items() if p in self.types}

    def of(self, arrays: Arrays) -> Arrays:
        """Arrays of inputs, or of directions, as those of their twins."""
        return {Leaf(self.twin_of.get(p.key, p.key), p.path): a for p, a in arrays.items()}

    def agrees(self, y: Arrays, x: Arrays, bound: float) -> bool:
        """Whether the twin has the same values at x: integers may wrap, as floats do not."""
        of_twin = self.f(self.at(x))
        both = [p for p in of_twin if p.key in self.live]
        wraps = relative({p: y[p] for p in both}, {p: of_twin[p] for p in both})
        return wraps is not None and wraps <= bound


def compiled_twin(twin: FloatTwin, wrt: Iterable[Key], outputs: Sequence[Output], first: int, primitives: PrimitiveSet) -> Twin:
    """These outputs of a twin, and their derivative, of pass `first`, by the twins of these inputs."""
    document, twin_of = twin
    keys = [o.key for o in outputs]
    derived = linearize(document, [twin_of[key] for key in wrt], outputs=keys, pass_number=first, primitives=primitives)
    chosen = [k for k, o in enumerate(document.head.outputs) if o.key in keys]
    f = Map(compile_graph(document.head, primitives, chosen))
    types = {p: t for i in document.head.inputs for p, t in leaf_types(i.key, i.type).items()}
    live = frozenset(o.key for o in document.head.outputs if o.value is not None)
    return Twin(f, compiled(derived, primitives, drop=1), twin_of, types, live)


def held_twin(
    whole: Document, wrt: Sequence[Key], outputs: Sequence[Output], primitives: PrimitiveSet
) -> tuple[Twin, Graph] | None:
    """These outputs of a document of one graph where what its `stop_gradient` nodes pass on is held, by inputs; and that graph.

    Loops that hold such nodes are written out before.

    By its definition the derivative of a function with `stop_gradient` is that of this one. None without such nodes.
    """
    whole = unrolled(whole, primitives)
    (graph,) = whole.graphs
    stops = [first for code, _, first, _ in forwards(graph, graph.args) if graph.cases[code].op == "stop_gradient"]
    if not stops:
        return None
    held = [Output(Key(f"\0{k}"), value, graph.type_of(value)) for k, value in enumerate(stops)]
    builder = GraphBuilder(graph.cases, [*graph.inputs, *(Input(o.key, o.type) for o in held)])
    new, number = [*range(len(graph.inputs))], {value: k for k, value in enumerate(stops, len(graph.inputs))}
    for code, args, first, after in forwards(graph, graph.args):
        if graph.cases[code].op == "stop_gradient":
            new.append(number[first])
        else:
            made = builder.append(code, [new[a] for a in args])
            new += range(made, made + after - first)
    ends = [replace(o, value=None if o.value is None else new[o.value]) for o in graph.outputs]
    document = replace(whole, graphs=(builder.build(graph.name, ends),))
    keys = [o.key for o in outputs]
    derived = linearize(document, wrt, outputs=keys, pass_number=whole.next_pass(), primitives=primitives)
    f = Map(compile_graph(document.head, primitives, [k for k, o in enumerate(ends) if o.key in keys]))
    values = Map(compile_graph(replace(graph, outputs=tuple(held)), primitives))
    return Twin(f, compiled(derived, primitives, drop=1), {}, {}, stopped=values), document.head


def moved_twin(whole: Document, primitives: PrimitiveSet, moving: Sequence[Input]) -> FloatTwin | None:
    """The twin in which datetimes, and integers that floats move, are moved as real numbers; all inputs that move are doubled.

    None where difference quotients can be taken of the graph itself.
    """
    inlined = inline(whole, primitives=primitives)
    graph = inlined.head
    cases = [graph.cases[code] for code in set(graph.code)]
    if not any(holds(i.type, DATETIMES) for i in moving) and not any(
        primitives[c.op].rules.integers == "moved" and any(holds(t, DATETIMES | INTEGERS) for t in c.results) for c in cases
    ):
        return None
    return float_twin(inlined, primitives, CONTINUOUS)


def compiled(document: Document, primitives: PrimitiveSet, drop: int = 0) -> Map:
    """The head of a document, materialized, as a function of arrays."""
    return Map(compile_graph(materialize(document).head, primitives), drop)
