"""Hypothesis strategies: random graphs with loops and branches in one another, whose values stay tame.

Carries are dead, the same in all steps, swapped, counters or constants; constants of bodies are unused; slices are passed through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from tests.graphs.sketch import Sketch, Value, document, type_of
from tests.graphs.strategies import ANY, SHAPES, Draw, Maker, Pool
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import Document
from tidu_cli.graph.types import RecordType, TensorType, Type, of_batch

TAME = 2.2
"""The bound of what loops carry, so that it is that of all steps."""
COUNTS = 100

I32, BOOL = TensorType("i32"), TensorType("bool")
ALL_DTYPES = ("f64", "c128", "f32", "i32", "bool")


class Nest(Pool):
    """Values of a graph under construction, in which loops and branches may be, `depth` of them in one another."""

    def __init__(self, draw: Draw, sketch: Sketch, values: Sequence[Value], depth: int, ways: Ways) -> None:
        super().__init__(draw, sketch, [])
        self.depth, self.ways = depth, ways
        self.others: list[Value] = []
        for value in values:
            self.take(value)

    def take(self, value: Value) -> None:
        """Have a value; of a record the fields; of what has many axes, or no elements, the sum along the first."""
        if isinstance(value.type, RecordType):
            for name, _ in value.type.fields:
                self.take(self.sketch.apply("field", value, name=name, bound=value.bound))
        elif value.type.rank <= 2 and value.type.size:
            self.values.append(value)
        else:
            self.others.append(value)
            if value.type.inexact:
                n = max(1, value.type.shape[0])
                self.take(self.sketch.apply("reduce_sum", value, axes=[0], bound=value.bound * n))

    def limited(self, value: Value) -> Value:
        """The value within the bound of what is carried."""
        return self.tame(value, TAME) if value.type.inexact else value

    def operands(self, most: int, *, records: bool = True) -> list[Value]:
        """Up to so many values of any type, some put together as records."""
        values = []
        for _ in range(self.draw(st.integers(0, most))):
            value = self.limited(self.pick(lambda t: True))
            if records and self.draw(st.integers(0, 9)) == 5:
                other = self.limited(self.pick(lambda t: True))
                value = self.record(type_of(f"{{a: {value.type}, b: {other.type}}}"), [value, other])
            values.append(value)
        return values

    def record(self, type_: Type, fields: Sequence[Value]) -> Value:
        return self.sketch.apply("record", *fields, type=type_, bound=max(f.bound for f in fields))

    def like(self, type_: Type) -> Value:
        """Some value of a type, within the bound of what is carried; a constant if there is none."""
        if isinstance(type_, RecordType):
            return self.record(type_, [self.like(t) for _, t in type_.fields])
        value = self.pick(lambda t: t == type_) if self.draw(st.integers(0, 5)) else None
        if value is None or (not type_.inexact and value.bound > COUNTS):
            return self.constant(type_)
        return self.limited(value)

    def constant(self, type_: TensorType) -> Value:
        number = self.draw(st.sampled_from([0, 1] if type_.dtype == "bool" else [0, 1, 2] if not type_.inexact else [0, 1, 0.75]))
        return self.sketch.full(number, type_)

    def spread(self, value: Value, length: int) -> Value:
        """An array of so many slices: the value, each time another number of times."""
        if isinstance(value.type, RecordType):
            parts = [self.sketch.apply("field", value, name=name, bound=value.bound) for name, _ in value.type.fields]
            return self.record(of_batch(value.type, length), [self.spread(p, length) for p in parts])
        shape = (length, *value.type.shape)
        axes = tuple(range(1, len(shape)))
        copies = self.sketch.apply("broadcast_in_dim", value, shape=shape, broadcast_dimensions=axes, bound=value.bound)
        if not value.type.inexact:
            return copies
        counts = self.sketch.apply("iota", dtype=value.type.dtype, shape=shape, dimension=0, bound=3)
        return self.sketch.apply("mul", copies, counts * 0.5 + 0.25, bound=value.bound * 1.75)

    def scanned(self, value: Value, length: int) -> tuple[Value, Value]:
        """What is scanned, the value itself if it has as many slices; and what a slice of it is like."""
        if isinstance(value.type, TensorType) and value.type.shape[:1] == (length,) and self.draw(st.booleans()):
            return value, replace(value, type=value.type.with_shape(value.type.shape[1:]))
        return self.spread(value, length), replace(value, bound=2 * value.bound)

    def inner(self, inputs: Sequence[Value]) -> tuple[Nest, list[Value]]:
        """What makes a graph of inputs of these types and bounds, and its inputs."""
        sketch = Sketch({f"x{k}": v.type for k, v in enumerate(inputs)})
        own = [replace(v, bound=due.bound) for v, due in zip(sketch.inputs, inputs, strict=True)]
        nest = Nest(self.draw, sketch, own, self.depth - 1, self.ways)
        nest.grow(self.draw(st.integers(0, 5)))
        return nest, own

    def grow(self, n: int) -> None:
        """So many operations more, of which some are loops and branches."""
        for _ in range(n if self.values else 0):
            nested = self.depth and self.draw(st.integers(0, 3)) == 1
            self.draw(st.sampled_from(self.ways.nested if nested else self.ways.makers))(self)

    def closed(self, outputs: Sequence[Value]) -> ClosedGraph:
        return ClosedGraph.of(self.sketch.build("", {f"y{k}": v for k, v in enumerate(outputs)}))

    def carried(self, own: Sequence[Value], k: int) -> Value:
        """What a step carries over as number k, where it took `own`."""
        type_ = own[k].type
        way = self.draw(st.sampled_from(["new", "new", "new", "same", "other", "count"]))
        if way == "same":
            return own[k]
        if way == "other":
            return self.draw(st.sampled_from([v for v in own if v.type == type_]))
        if way == "count" and type_ == I32:
            return replace(own[k] + 1, bound=COUNTS)
        return self.like(type_)


class Ways:
    """What graphs are made of: operations, and loops and branches."""

    def __init__(self, makers: tuple[Maker, ...], nested: tuple[Maker, ...]) -> None:
        self.makers, self.nested = makers, nested


def _taken(pool: Nest, op: str, operands: Sequence[Value], bounds: Sequence[float], **attrs: object) -> None:
    for value, bound in zip(pool.sketch.apply_all(op, *operands, **attrs), bounds, strict=True):
        pool.take(replace(value, bound=bound))


def _bound(value: Value) -> float:
    if isinstance(value.type, RecordType):
        return max(TAME, value.bound)
    return TAME if value.type.inexact else COUNTS


def _scan(pool: Nest) -> None:
    draw, length = pool.draw, pool.draw(st.sampled_from([0, 1, 2, 3, 3]))
    consts, init = pool.operands(2), pool.operands(3)
    scanned = pool.operands(2) if consts or init else [pool.limited(pool.pick(lambda t: True))]
    xs = [pool.scanned(v, length) for v in scanned]
    within = [replace(v, bound=_bound(v)) for v in init]
    inner, own = pool.inner([*consts, *within, *[row for _, row in xs]])
    carry = own[len(consts) : len(consts) + len(init)]
    out = [inner.carried(carry, k) for k in range(len(carry))]
    candidates = [*inner.values[-3:], *inner.others[-1:], *own]
    ys = draw(st.lists(st.sampled_from(candidates), max_size=2)) if candidates else []
    if not out and not ys:
        ys = [inner.sketch.full(0.5, TensorType("f64"))]
    operands = [*consts, *init, *[x for x, _ in xs]]
    numbers = {"length": length, "num_consts": len(consts), "num_carry": len(init), "reverse": draw(st.booleans())}
    _taken(pool, "scan", operands, [*map(_bound, carry), *[y.bound for y in ys]], **numbers, body=inner.closed([*out, *ys]))


def _index(pool: Nest) -> Value:
    index = pool.pick(lambda t: t in (I32, BOOL)) if pool.draw(st.booleans()) else None
    if index is not None:
        return index
    if (x := pool.pick(lambda t: t == TensorType("f64"))) is None or pool.draw(st.booleans()):
        return pool.sketch.full(pool.draw(st.integers(-1, 3)), I32)
    return (
        pool.sketch.apply("gt", x, 0.1)
        if pool.draw(st.booleans())
        else pool.sketch.apply("convert_element_type", x, new_dtype="i32")
    )


def _cond(pool: Nest) -> None:
    operands, index = pool.operands(3), _index(pool)
    types: list[Type] = []
    branches, bounds = [], []
    for k in range(pool.draw(st.integers(1, 3))):
        inner, own = pool.inner(operands)
        if k == 0:
            candidates = [*inner.values[-3:], *own]
            given = [inner.sketch.full(0.5, TensorType("f64"))] if not candidates else []
            out = pool.draw(st.lists(st.sampled_from(candidates), min_size=1, max_size=2)) if candidates else given
            types, bounds = [v.type for v in out], [v.bound for v in out]
        else:
            out = [inner.like(t) for t in types]
            bounds = [max(b, v.bound) for b, v in zip(bounds, out, strict=True)]
        branches.append(inner.closed(out))
    _taken(pool, "cond", [index, *operands], bounds, branches=tuple(branches))


def _while(pool: Nest, *, known: bool = True) -> None:
    """A loop that counts: to a constant if the number of steps is to be known, else to a value."""
    consts, init = pool.operands(2), pool.operands(3)
    counter = pool.sketch.full(0, I32)
    inner, own = pool.inner([*consts, replace(counter, bound=COUNTS), *[replace(v, bound=_bound(v)) for v in init]])
    carry = own[len(consts) :]
    out = [carry[0] + 1, *[inner.carried(carry[1:], k) for k in range(len(init))]]
    ends: list[Value] = []
    if not known and (end := pool.pick(lambda t: t == I32)) is not None:
        ends = [pool.sketch.apply("rem", end, 4, bound=4)]
    test = Sketch({f"x{k}": v.type for k, v in enumerate([*ends, *carry])})
    count = test.inputs[len(ends)]
    go_on = test.apply("lt", count, test.inputs[0] if ends else pool.draw(st.integers(0, 3)))
    condition = ClosedGraph.of(test.build("", {"y": go_on}))
    numbers = {"cond_consts": len(ends), "body_consts": len(consts)}
    attrs = {**numbers, "condition": condition, "body": inner.closed(out)}
    _taken(pool, "while", [*ends, *consts, counter, *init], list(map(_bound, carry)), **attrs)


def _endless(pool: Nest) -> None:
    _while(pool, known=False)


def _float(pool: Nest) -> Value | None:
    x = pool.pick(lambda t: t.dtype in ("i32", "bool"))
    return None if x is None else pool.apply("convert_element_type", x, new_dtype="f64", bound=max(x.bound, 1))


SCANS: tuple[Maker, ...] = (_scan, _scan, _cond)
COUNTED: tuple[Maker, ...] = (_scan, _cond, _while)
CONDITIONED: tuple[Maker, ...] = (_scan, _cond, _endless)
MIXED = (*ANY, _float)


@st.composite
def looping(
    draw: Draw,
    *,
    nested: tuple[Maker, ...] = SCANS,
    makers: tuple[Maker, ...] = MIXED,
    dtypes: tuple[str, ...] = ("f64", "f64", "c128", "i32", "bool"),
    depth: int = 2,
    steps: int = 2,
) -> Document:
    """Documents of one graph in which there is a loop or a branch at least; `depth` of them in one another at most."""
    types = st.builds(TensorType, st.sampled_from(dtypes), st.sampled_from(SHAPES))
    declared = {"x": TensorType("f64"), **dict(zip("yz", draw(st.lists(types, max_size=2)), strict=False))}
    sketch = Sketch(declared)
    own = [replace(v, bound=TAME if v.type.inexact else 5) for v in sketch.inputs]
    pool = Nest(draw, sketch, own, depth, Ways(makers, nested))
    for _ in range(draw(st.integers(1, steps))):
        pool.grow(draw(st.integers(0, 2)))
        draw(st.sampled_from(nested))(pool)
    outputs = draw(st.lists(st.sampled_from(pool.values[-4:] + own + pool.others[-2:]), max_size=2))
    return document(sketch.build("f", {f"u{k}": value for k, value in enumerate([pool.values[-1], *outputs])}))
