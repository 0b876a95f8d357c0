"""What makes sites of identities: graphs of drawn types in which they apply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.graphs.sketch import Sketch, Value
from tidu_cli.graph.types import FLOATS, INTEGERS, NUMERIC, TensorType

Shape = tuple[int, ...]
SHAPES: tuple[Shape, ...] = ((), (1,), (3,), (0,), (2, 3), (1, 3), (2, 1, 3), (2, 0), (17,))
SIGNED = INTEGERS - {"u8", "u16", "u32", "u64"}
ANY = NUMERIC | {"bool"}


@dataclass
class Draw:
    """What makes a site: x, y and z are inputs of the drawn type, p and q of bools, m is one of that dtype and any shape."""

    draw: Callable[[st.SearchStrategy[Any]], Any]
    sketch: Sketch
    type: TensorType

    @property
    def x(self) -> Value:
        return self.sketch.inputs[0]

    @property
    def y(self) -> Value:
        return self.sketch.inputs[1]

    @property
    def p(self) -> Value:
        return self.sketch.inputs[2]

    @property
    def q(self) -> Value:
        return self.sketch.inputs[3]

    def full(self, number: complex, type_: TensorType | None = None) -> Value:
        return self.sketch.full(number, type_ or self.type)

    def op(self, name: str, /, *values: Value, **attrs: object) -> Value:
        return self.sketch.apply(name, *values, **attrs)

    def ops(self, name: str, /, *values: Value, **attrs: object) -> list[Value]:
        return self.sketch.apply_all(name, *values, **attrs)

    def one_of(self, *some: Any) -> Any:
        return self.draw(st.sampled_from(some))

    def axis(self) -> int:
        return self.draw(st.integers(0, self.type.rank - 1))

    def order(self) -> list[int]:
        return self.draw(st.permutations(range(self.type.rank)))

    def same_size(self) -> Shape:
        n = self.type.size
        return self.one_of((n,), (1, n), (n, 1), self.type.shape, tuple(reversed(self.type.shape)))

    def zero(self) -> Value:
        """A zero of complex numbers has two."""
        return self.full(0)

    def minus_zero(self) -> Value:
        return self.full(complex(-0.0, -0.0) if self.type.complex else -0.0)


Maker = Callable[[Draw], "Value | Sequence[Value] | None"]


@dataclass(frozen=True)
class Sites:
    """What makes sites of an identity, of which dtypes, and of how many axes at least."""

    make: Maker
    dtypes: frozenset[str] = NUMERIC
    rank: int = 0


def either(make: Callable[[Draw, Value, Value], Value], other: Callable[[Draw], Value]) -> Maker:
    """x and another operand, in either order."""
    return lambda d: make(d, *d.one_of(lambda x, c: (x, c), lambda x, c: (c, x))(d.x, other(d)))


def part(d: Draw, x: Value, axis: int, first: int, end: int) -> Value:
    starts, limits = [0] * x.type.rank, list(x.type.shape)
    starts[axis], limits[axis] = first, end
    return d.op("slice", x, start_indices=starts, limit_indices=limits)


def reshaping(name: str) -> Callable[[Draw, Value], Value | None]:
    def apply(d: Draw, x: Value) -> Value | None:
        if name == "reshape":
            return d.op(name, x, new_sizes=d.same_size())
        if name == "expand_dims":
            return d.op(name, x, dimensions=d.one_of([0], [x.type.rank], [0, 2]) if x.type.rank else [0])
        return d.op(name, x, dimensions=[k for k, n in enumerate(x.type.shape) if n == 1])

    return apply


def reshaped_twice(outer: str) -> Maker:
    return lambda d: reshaping(outer)(d, reshaping(d.one_of("reshape", "expand_dims", "squeeze"))(d, d.x))


def unchanged(name: str) -> Maker:
    attrs: Mapping[str, Callable[[TensorType], dict[str, object]]] = {
        "reshape": lambda t: {"new_sizes": t.shape},
        "expand_dims": lambda t: {"dimensions": []},
        "squeeze": lambda t: {"dimensions": []},
        "broadcast_in_dim": lambda t: {"shape": t.shape, "broadcast_dimensions": list(range(t.rank))},
        "slice": lambda t: {"start_indices": [0] * t.rank, "limit_indices": t.shape},
        "copy": lambda t: {},
        "convert_element_type": lambda t: {"new_dtype": t.dtype},
    }
    return lambda d: d.op(name, d.x, **attrs[name](d.type))


def moved_number(name: str) -> Maker:
    def make(d: Draw) -> Value:
        x = d.op("broadcast_in_dim", d.op("reshape", first(d), new_sizes=()), shape=d.type.shape, broadcast_dimensions=())
        if name == "transpose":
            return d.op(name, x, permutation=d.order())
        if name == "rev":
            return d.op(name, x, dimensions=[d.axis()])
        return reshaping(name)(d, x)

    return make


def first(d: Draw) -> Value:
    """The first element, of an array that has one."""
    if not d.type.size:
        return d.full(2, TensorType(d.type.dtype, (1,)))
    one = [1] * d.type.rank
    return d.op("slice", d.x, start_indices=[0] * d.type.rank, limit_indices=one)


def broadcast_twice(d: Draw) -> Value:
    y = d.op("broadcast_in_dim", d.x, shape=(2, *d.type.shape), broadcast_dimensions=list(range(1, d.type.rank + 1)))
    return d.op("broadcast_in_dim", y, shape=(*y.type.shape, 3), broadcast_dimensions=list(range(y.type.rank)))


def padded_by_nothing(d: Draw) -> Value:
    return d.op("pad", d.x, d.full(7, TensorType(d.type.dtype)), padding_config=[(0, 0, 2 if n <= 1 else 0) for n in d.type.shape])


def with_nothing(d: Draw) -> Value:
    axis = d.axis()
    nothing = part(d, d.y, axis, 0, 0)
    parts = d.one_of([d.x], [d.x, nothing], [nothing, d.x], [d.x, nothing, d.y], [nothing, nothing])
    return d.op("concatenate", *parts, dimension=axis)


def neighbours(d: Draw) -> Value:
    axis = d.axis()
    n = d.type.shape[axis]
    a, b, c, e = sorted(d.draw(st.lists(st.integers(0, n), min_size=4, max_size=4)))
    a, e = d.one_of((a, e), (0, n))
    parts = [part(d, d.x, axis, i, j) for i, j in ((a, b), (b, c), (c, e))]
    if d.one_of(False, True):
        parts = d.ops("split", d.x, sizes=[b, n - b], axis=axis)
    return d.op("concatenate", *parts, dimension=axis)


def of_joined(d: Draw) -> Value:
    axis, n = d.axis(), 0
    y = d.op("concatenate", d.x, d.y, d.x, dimension=axis)
    n = d.type.shape[axis]
    first, end = sorted((d.draw(st.integers(0, n)), d.draw(st.integers(0, n))))
    k = d.one_of(0, 1, 2)
    return part(d, y, axis, k * n + first, k * n + end)


def unpadded(d: Draw) -> Value:
    config = [(d.one_of(0, 2), d.one_of(0, 1), d.one_of(0, 1)) for _ in d.type.shape]
    y = d.op("pad", d.x, d.full(7, TensorType(d.type.dtype)), padding_config=config)
    ends = [low + max(n - 1, 0) * (gap + 1) + (n > 0) for n, (low, _, gap) in zip(d.type.shape, config, strict=True)]
    return d.op("slice", y, start_indices=[c[0] for c in config], limit_indices=ends, strides=[c[2] + 1 for c in config])


def split_of_joined(d: Draw) -> Sequence[Value]:
    axis = d.axis()
    return d.ops("split", d.op("concatenate", d.x, d.y, dimension=axis), sizes=[d.type.shape[axis]] * 2, axis=axis)


def side_by_side(d: Draw) -> Value:
    axis, zero = d.axis(), d.full(0, TensorType(d.type.dtype))
    n, before, after = d.type.shape[axis], d.one_of(0, 1), d.one_of(0, 2)
    nothing = [(0, 0, 0)] * d.type.rank
    x, y = (
        d.op("pad", v, zero, padding_config=[edges if k == axis else c for k, c in enumerate(nothing)])
        for v, edges in ((d.x, (before, n + after, 0)), (d.y, (before + n, after, 0)))
    )
    return d.op("add", *d.one_of((x, y), (y, x)))


WIDER = {
    "f16": ("f32", "f64"), "bf16": ("f32", "f64"), "f32": ("f64", "c64", "c128"), "f64": ("c128",), "c64": ("c128",),
    "i8": ("i16", "i64"), "i32": ("i64",), "u8": ("u16", "i16", "i64"), "u32": ("u64", "i64"), "bool": ("i8", "u64", "f16", "f64"),
}  # fmt: skip


def there_and_back(d: Draw) -> Value:
    wide = d.op("convert_element_type", d.x, new_dtype=d.one_of(*WIDER[d.type.dtype]))
    return d.op("convert_element_type", wide, new_dtype=d.type.dtype)


def by_way_of(d: Draw) -> Value:
    wide = d.op("convert_element_type", d.x, new_dtype=d.one_of(*(w for w in WIDER[d.type.dtype] if w in FLOATS)))
    return d.op("convert_element_type", wide, new_dtype=d.one_of(*sorted(FLOATS - {d.type.dtype})))


def reduced(name: str) -> Maker:
    def make(d: Draw) -> Value:
        axes = [k for k, n in enumerate(d.type.shape) if n == 1]
        return d.op(name, d.x, axes=d.one_of(axes, []))

    return make


def at_a_place(d: Draw) -> Value:
    sizes = [d.draw(st.integers(0, n)) for n in d.type.shape]
    at = [d.full(d.draw(st.integers(-3, 5)), TensorType("i32")) for _ in sizes]
    return d.op("dynamic_slice", d.x, *at, slice_sizes=sizes)


def taken_whole(d: Draw) -> Value:
    return d.op("dynamic_slice", d.x, *places(d), slice_sizes=d.type.shape)


def places(d: Draw) -> list[Value]:
    """Indices that nobody knows."""
    flags = d.op("reduce_or", d.p, axes=list(range(d.type.rank))) if d.type.rank else d.p
    return [d.op("convert_element_type", flags, new_dtype="i32")] * d.type.rank


def by_unit(d: Draw) -> Value:
    axis = d.axis()
    n = d.type.shape[axis]
    counts = [d.op("iota", dtype="i64", shape=(n, n), dimension=k) for k in d.one_of((0, 1), (1, 0))]
    unit = d.op("convert_element_type", d.op("eq", *counts), new_dtype=d.type.dtype)
    k = d.one_of(0, 1)
    if d.one_of(False, True):
        return d.op("dot_general", unit, d.x, dimension_numbers=[[[k], [axis]], [[], []]])
    return d.op("dot_general", d.x, unit, dimension_numbers=[[[axis], [k]], [[], []]])


def field(d: Draw) -> Value:
    type_ = f"{{a: {d.type}, b: {d.type}}}"
    return d.op("field", d.op("record", d.x, d.y, type=type_), name=d.one_of("a", "b"))


def got_axes(d: Draw) -> Value:
    y = d.op("expand_dims", d.x, dimensions=d.one_of([0], [d.type.rank], [0, d.type.rank + 1]))
    shape = [2 if n == 1 else n for n in y.type.shape]
    return d.op("broadcast_in_dim", y, shape=(*shape, 2), broadcast_dimensions=list(range(len(shape))))


def reshaped_alike(name: str) -> Maker:
    def make(d: Draw) -> Value:
        shape = d.same_size()
        x, y = (d.op("reshape", v, new_sizes=shape) for v in (d.x, d.y))
        c = d.full(3, x.type)
        return d.op(name, x) if name == "neg" else d.op(name, *d.one_of((x, y), (x, c), (c, y), (x, x)))

    return make


def sliced_twice(d: Draw) -> Value:
    x = d.x
    for _ in range(2):
        ends = [sorted((d.draw(st.integers(0, n)), d.draw(st.integers(0, n)))) for n in x.type.shape]
        steps = d.one_of(None, [d.one_of(1, 2, 3) for _ in ends])
        x = d.op("slice", x, start_indices=[a for a, _ in ends], limit_indices=[b for _, b in ends], strides=steps)
    return x


def joined_twice(d: Draw) -> Value:
    axis = d.axis()
    inner = d.op("concatenate", d.x, d.y, dimension=axis)
    return d.op("concatenate", *d.one_of([inner, d.x], [d.y, inner], [inner, inner], [inner]), dimension=axis)


def scaled(name: str) -> Maker:
    def make(d: Draw) -> Value:
        operands = d.op("neg", d.x), d.full(d.one_of(0.5, 3.0, 0.0, -0.0, float("inf"), 1e-300))
        return d.op(name, *(operands if name == "div" else d.one_of(operands, operands[::-1])))

    return make


def negative_scaled(d: Draw) -> Value:
    c, name = d.full(d.one_of(0.5, 3.0, 0.0, -0.0, float("inf"))), d.one_of("mul", "div")
    return d.op("neg", d.op(name, *d.one_of((d.x, c), (c, d.x))))


def sum_of_equals(d: Draw) -> Value:
    axes = d.draw(st.lists(st.integers(0, d.type.rank - 1), unique=True, min_size=1)) if d.type.rank else []
    c = d.one_of(1.0, 0.5, -3.0, 0.1, 1e30, float("inf"), 0.0, -0.0, 2.0**-1060, 65504.0, 2049.0)
    return d.op("reduce_sum", d.full(c), axes=axes)


def selected(d: Draw) -> Value:
    which = d.one_of(d.p, d.full(1, TensorType("bool")))
    return d.op("select_n", which, *d.one_of((d.x,), (d.x, d.x)))


def known_choice(d: Draw) -> Value:
    if d.one_of(False, True):
        which = d.full(d.one_of(0, 1), TensorType("bool", d.one_of((), d.type.shape)))
        return d.op("select_n", which, d.x, d.y)
    which = d.full(d.one_of(-2, 0, 1, 2, 9), TensorType("i32", d.one_of((), d.type.shape)))
    return d.op("select_n", which, d.x, d.y, d.x)


def pair(name: str) -> Maker:
    return lambda d: d.op(name, d.x, d.x)


def neg(d: Draw, x: Value) -> Value:
    return d.op("neg", x)
