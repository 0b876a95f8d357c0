"""For each line of the table of identities graphs in which it applies, of drawn types: `SITES`, by op and statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.sketch import Sketch, Value
from tidu_cli.graph.types import COMPLEXES, FLOATS, INEXACT, INTEGERS, NUMERIC, REALS, TensorType

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


def _part(d: Draw, x: Value, axis: int, first: int, end: int) -> Value:
    starts, limits = [0] * x.type.rank, list(x.type.shape)
    starts[axis], limits[axis] = first, end
    return d.op("slice", x, start_indices=starts, limit_indices=limits)


def _reshaping(name: str) -> Callable[[Draw, Value], Value | None]:
    def apply(d: Draw, x: Value) -> Value | None:
        if name == "reshape":
            return d.op(name, x, new_sizes=d.same_size())
        if name == "expand_dims":
            return d.op(name, x, dimensions=d.one_of([0], [x.type.rank], [0, 2]) if x.type.rank else [0])
        return d.op(name, x, dimensions=[k for k, n in enumerate(x.type.shape) if n == 1])

    return apply


def _reshaped_twice(outer: str) -> Maker:
    return lambda d: _reshaping(outer)(d, _reshaping(d.one_of("reshape", "expand_dims", "squeeze"))(d, d.x))


def _unchanged(name: str) -> Maker:
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


def _moved_number(name: str) -> Maker:
    def make(d: Draw) -> Value:
        x = d.op("broadcast_in_dim", d.op("reshape", _first(d), new_sizes=()), shape=d.type.shape, broadcast_dimensions=())
        if name == "transpose":
            return d.op(name, x, permutation=d.order())
        if name == "rev":
            return d.op(name, x, dimensions=[d.axis()])
        return _reshaping(name)(d, x)

    return make


def _first(d: Draw) -> Value:
    """The first element, of an array that has one."""
    if not d.type.size:
        return d.full(2, TensorType(d.type.dtype, (1,)))
    one = [1] * d.type.rank
    return d.op("slice", d.x, start_indices=[0] * d.type.rank, limit_indices=one)


def _broadcast_twice(d: Draw) -> Value:
    y = d.op("broadcast_in_dim", d.x, shape=(2, *d.type.shape), broadcast_dimensions=list(range(1, d.type.rank + 1)))
    return d.op("broadcast_in_dim", y, shape=(*y.type.shape, 3), broadcast_dimensions=list(range(y.type.rank)))


def _padded_by_nothing(d: Draw) -> Value:
    return d.op("pad", d.x, d.full(7, TensorType(d.type.dtype)), padding_config=[(0, 0, 2 if n <= 1 else 0) for n in d.type.shape])


def _with_nothing(d: Draw) -> Value:
    axis = d.axis()
    nothing = _part(d, d.y, axis, 0, 0)
    parts = d.one_of([d.x], [d.x, nothing], [nothing, d.x], [d.x, nothing, d.y], [nothing, nothing])
    return d.op("concatenate", *parts, dimension=axis)


def _neighbours(d: Draw) -> Value:
    axis = d.axis()
    n = d.type.shape[axis]
    a, b, c, e = sorted(d.draw(st.lists(st.integers(0, n), min_size=4, max_size=4)))
    a, e = d.one_of((a, e), (0, n))
    parts = [_part(d, d.x, axis, i, j) for i, j in ((a, b), (b, c), (c, e))]
    if d.one_of(False, True):
        parts = d.ops("split", d.x, sizes=[b, n - b], axis=axis)
    return d.op("concatenate", *parts, dimension=axis)


def _of_joined(d: Draw) -> Value:
    axis, n = d.axis(), 0
    y = d.op("concatenate", d.x, d.y, d.x, dimension=axis)
    n = d.type.shape[axis]
    first, end = sorted((d.draw(st.integers(0, n)), d.draw(st.integers(0, n))))
    k = d.one_of(0, 1, 2)
    return _part(d, y, axis, k * n + first, k * n + end)


def _unpadded(d: Draw) -> Value:
    config = [(d.one_of(0, 2), d.one_of(0, 1), d.one_of(0, 1)) for _ in d.type.shape]
    y = d.op("pad", d.x, d.full(7, TensorType(d.type.dtype)), padding_config=config)
    ends = [low + max(n - 1, 0) * (gap + 1) + (n > 0) for n, (low, _, gap) in zip(d.type.shape, config, strict=True)]
    return d.op("slice", y, start_indices=[c[0] for c in config], limit_indices=ends, strides=[c[2] + 1 for c in config])


def _split_of_joined(d: Draw) -> Sequence[Value]:
    axis = d.axis()
    return d.ops("split", d.op("concatenate", d.x, d.y, dimension=axis), sizes=[d.type.shape[axis]] * 2, axis=axis)


def _side_by_side(d: Draw) -> Value:
    axis, zero = d.axis(), d.full(0, TensorType(d.type.dtype))
    n, before, after = d.type.shape[axis], d.one_of(0, 1), d.one_of(0, 2)
    nothing = [(0, 0, 0)] * d.type.rank
    x, y = (
        d.op("pad", v, zero, padding_config=[edges if k == axis else c for k, c in enumerate(nothing)])
        for v, edges in ((d.x, (before, n + after, 0)), (d.y, (before + n, after, 0)))
    )
    return d.op("add", *d.one_of((x, y), (y, x)))


_WIDER = {
    "f16": ("f32", "f64"), "bf16": ("f32", "f64"), "f32": ("f64", "c64", "c128"), "f64": ("c128",), "c64": ("c128",),
    "i8": ("i16", "i64"), "i32": ("i64",), "u8": ("u16", "i16", "i64"), "u32": ("u64", "i64"), "bool": ("i8", "u64", "f16", "f64"),
}  # fmt: skip


def _there_and_back(d: Draw) -> Value:
    wide = d.op("convert_element_type", d.x, new_dtype=d.one_of(*_WIDER[d.type.dtype]))
    return d.op("convert_element_type", wide, new_dtype=d.type.dtype)


def _by_way_of(d: Draw) -> Value:
    wide = d.op("convert_element_type", d.x, new_dtype=d.one_of(*(w for w in _WIDER[d.type.dtype] if w in FLOATS)))
    return d.op("convert_element_type", wide, new_dtype=d.one_of(*sorted(FLOATS - {d.type.dtype})))


def _reduced(name: str) -> Maker:
    def make(d: Draw) -> Value:
        axes = [k for k, n in enumerate(d.type.shape) if n == 1]
        return d.op(name, d.x, axes=d.one_of(axes, []))

    return make


def _at_a_place(d: Draw) -> Value:
    sizes = [d.draw(st.integers(0, n)) for n in d.type.shape]
    at = [d.full(d.draw(st.integers(-3, 5)), TensorType("i32")) for _ in sizes]
    return d.op("dynamic_slice", d.x, *at, slice_sizes=sizes)


def _taken_whole(d: Draw) -> Value:
    return d.op("dynamic_slice", d.x, *_places(d), slice_sizes=d.type.shape)


def _places(d: Draw) -> list[Value]:
    """Indices that nobody knows."""
    flags = d.op("reduce_or", d.p, axes=list(range(d.type.rank))) if d.type.rank else d.p
    return [d.op("convert_element_type", flags, new_dtype="i32")] * d.type.rank


def _by_unit(d: Draw) -> Value:
    axis = d.axis()
    n = d.type.shape[axis]
    counts = [d.op("iota", dtype="i64", shape=(n, n), dimension=k) for k in d.one_of((0, 1), (1, 0))]
    unit = d.op("convert_element_type", d.op("eq", *counts), new_dtype=d.type.dtype)
    k = d.one_of(0, 1)
    if d.one_of(False, True):
        return d.op("dot_general", unit, d.x, dimension_numbers=[[[k], [axis]], [[], []]])
    return d.op("dot_general", d.x, unit, dimension_numbers=[[[axis], [k]], [[], []]])


def _field(d: Draw) -> Value:
    type_ = f"{{a: {d.type}, b: {d.type}}}"
    return d.op("field", d.op("record", d.x, d.y, type=type_), name=d.one_of("a", "b"))


def _got_axes(d: Draw) -> Value:
    y = d.op("expand_dims", d.x, dimensions=d.one_of([0], [d.type.rank], [0, d.type.rank + 1]))
    shape = [2 if n == 1 else n for n in y.type.shape]
    return d.op("broadcast_in_dim", y, shape=(*shape, 2), broadcast_dimensions=list(range(len(shape))))


def _reshaped_alike(name: str) -> Maker:
    def make(d: Draw) -> Value:
        shape = d.same_size()
        x, y = (d.op("reshape", v, new_sizes=shape) for v in (d.x, d.y))
        c = d.full(3, x.type)
        return d.op(name, x) if name == "neg" else d.op(name, *d.one_of((x, y), (x, c), (c, y), (x, x)))

    return make


def _sliced_twice(d: Draw) -> Value:
    x = d.x
    for _ in range(2):
        ends = [sorted((d.draw(st.integers(0, n)), d.draw(st.integers(0, n)))) for n in x.type.shape]
        steps = d.one_of(None, [d.one_of(1, 2, 3) for _ in ends])
        x = d.op("slice", x, start_indices=[a for a, _ in ends], limit_indices=[b for _, b in ends], strides=steps)
    return x


def _joined_twice(d: Draw) -> Value:
    axis = d.axis()
    inner = d.op("concatenate", d.x, d.y, dimension=axis)
    return d.op("concatenate", *d.one_of([inner, d.x], [d.y, inner], [inner, inner], [inner]), dimension=axis)


def _scaled(name: str) -> Maker:
    def make(d: Draw) -> Value:
        operands = d.op("neg", d.x), d.full(d.one_of(0.5, 3.0, 0.0, -0.0, float("inf"), 1e-300))
        return d.op(name, *(operands if name == "div" else d.one_of(operands, operands[::-1])))

    return make


def _negative_scaled(d: Draw) -> Value:
    c, name = d.full(d.one_of(0.5, 3.0, 0.0, -0.0, float("inf"))), d.one_of("mul", "div")
    return d.op("neg", d.op(name, *d.one_of((d.x, c), (c, d.x))))


def _sum_of_equals(d: Draw) -> Value:
    axes = d.draw(st.lists(st.integers(0, d.type.rank - 1), unique=True, min_size=1)) if d.type.rank else []
    c = d.one_of(1.0, 0.5, -3.0, 0.1, 1e30, float("inf"), 0.0, 2.0**-1060, 65504.0, 2049.0)
    return d.op("reduce_sum", d.full(c), axes=axes)


def _selected(d: Draw) -> Value:
    which = d.one_of(d.p, d.full(1, TensorType("bool")))
    return d.op("select_n", which, *d.one_of((d.x,), (d.x, d.x)))


def _known_choice(d: Draw) -> Value:
    if d.one_of(False, True):
        which = d.full(d.one_of(0, 1), TensorType("bool", d.one_of((), d.type.shape)))
        return d.op("select_n", which, d.x, d.y)
    which = d.full(d.one_of(-2, 0, 1, 2, 9), TensorType("i32", d.one_of((), d.type.shape)))
    return d.op("select_n", which, d.x, d.y, d.x)


def _pair(name: str) -> Maker:
    return lambda d: d.op(name, d.x, d.x)


def _neg(d: Draw, x: Value) -> Value:
    return d.op("neg", x)


SITES: Mapping[tuple[str, str], Sites] = {
    ("add", "x + (-0) = x"): Sites(either(lambda d, x, y: x + y, Draw.minus_zero), INEXACT),
    ("add", "n + 0 = n"): Sites(either(lambda d, x, y: x + y, Draw.zero), INTEGERS),
    ("add", "x + 0 = x"): Sites(either(lambda d, x, y: x + y, Draw.zero), INEXACT),
    ("add", "x + (-y) = x - y"): Sites(either(lambda d, x, y: x + y, lambda d: -d.y)),
    ("sub", "x - 0 = x"): Sites(lambda d: d.x - d.zero()),
    ("sub", "x - (-0) = x"): Sites(lambda d: d.x - d.minus_zero(), INEXACT),
    ("sub", "(-0) - x = -x"): Sites(lambda d: d.minus_zero() - d.x, INEXACT),
    ("sub", "0 - n = -n"): Sites(lambda d: d.zero() - d.x, INTEGERS),
    ("sub", "0 - x = -x"): Sites(lambda d: d.zero() - d.x, INEXACT),
    ("sub", "n - n = 0"): Sites(_pair("sub"), INTEGERS),
    ("sub", "x - x = 0"): Sites(_pair("sub"), INEXACT),
    ("sub", "x - (-y) = x + y"): Sites(lambda d: d.x - -d.y),
    ("mul", "1 x = x, of reals"): Sites(either(lambda d, x, y: x * y, lambda d: d.full(1)), REALS),
    ("mul", "1 z = z"): Sites(either(lambda d, x, y: x * y, lambda d: d.full(1)), COMPLEXES),
    ("mul", "(-1) x = -x"): Sites(lambda d: d.full(-1.0) * d.x, FLOATS),
    ("mul", "x (-1) = -x"): Sites(lambda d: d.x * d.full(-1.0), FLOATS),
    ("mul", "0 n = 0"): Sites(either(lambda d, x, y: x * y, Draw.zero), INTEGERS),
    ("mul", "0 x = 0"): Sites(either(lambda d, x, y: x * y, Draw.zero), INEXACT),
    ("mul", "(-x) (-y) = x y"): Sites(lambda d: -d.x * -d.y, FLOATS),
    ("mul", "(-x) c = x (-c)"): Sites(_scaled("mul"), FLOATS),
    ("div", "x / 1 = x"): Sites(lambda d: d.x / d.full(1), FLOATS),
    ("div", "(-x) / (-y) = x / y"): Sites(lambda d: -d.x / -d.y, FLOATS),
    ("div", "(-x) / c = x / (-c)"): Sites(_scaled("div"), FLOATS),
    ("neg", "-(-x) = x"): Sites(lambda d: d.op("neg", -d.x)),
    ("neg", "-(x c) = x (-c), -(x / c) = x / (-c)"): Sites(_negative_scaled, FLOATS),
    ("neg", "-(x - y) = y - x"): Sites(lambda d: -(d.x - d.y), INEXACT),
    ("integer_pow", "x¹ = x"): Sites(lambda d: d.op("integer_pow", d.x, y=1)),
    ("integer_pow", "x⁰ = 1"): Sites(lambda d: d.op("integer_pow", d.x, y=0)),
    ("abs", "|-x| = |x|"): Sites(lambda d: d.op("abs", -d.x), REALS - (INTEGERS - SIGNED)),
    ("abs", "||x|| = |x|"): Sites(lambda d: d.op("abs", d.op("abs", d.x)), REALS),
    ("max", "max(x, x) = x"): Sites(_pair("max"), FLOATS),
    ("min", "min(x, x) = x"): Sites(_pair("min"), FLOATS),
    ("conj", "conj conj z = z"): Sites(lambda d: d.op("conj", d.op("conj", d.x)), COMPLEXES),
    ("real", "Re (x + iy) = x"): Sites(lambda d: d.op("real", d.op("complex", d.x, d.y)), frozenset({"f32", "f64"})),
    ("imag", "Im (x + iy) = y"): Sites(lambda d: d.op("imag", d.op("complex", d.x, d.y)), frozenset({"f32", "f64"})),
    ("real", "Re conj z = Re z"): Sites(lambda d: d.op("real", d.op("conj", d.x)), COMPLEXES),
    ("imag", "Im conj z = -Im z"): Sites(lambda d: d.op("imag", d.op("conj", d.x)), COMPLEXES),
    ("real", "Re (x + 0i) = x"): Sites(
        lambda d: d.op("real", d.op("convert_element_type", d.x, new_dtype={"f32": "c64", "f64": "c128"}[d.type.dtype])),
        frozenset({"f32", "f64"}),
    ),
    ("complex", "Re z + i Im z = z"): Sites(lambda d: d.op("complex", d.op("real", d.x), d.op("imag", d.x)), COMPLEXES),
    ("reduce_sum", "Σ -x = -Σ x"): Sites(lambda d: d.op("reduce_sum", -d.x, axes=d.order()[:1]), INEXACT),
    ("reduce_sum", "Σ c = n c, where no partial sum rounds"): Sites(_sum_of_equals, FLOATS),
    **{
        (o, "of the same shape: x"): Sites(_unchanged(o), ANY)
        for o in ("reshape", "expand_dims", "squeeze", "broadcast_in_dim", "slice", "copy")
    },
    **{(o, "reshape of reshape: one, or x"): Sites(_reshaped_twice(o), ANY) for o in ("reshape", "expand_dims", "squeeze")},
    **{
        (o, "of a number repeated: the number repeated"): Sites(_moved_number(o), ANY, rank=1)
        for o in ("reshape", "expand_dims", "squeeze", "transpose", "rev")
    },
    ("transpose", "axes in order: x"): Sites(lambda d: d.op("transpose", d.x, permutation=list(range(d.type.rank))), ANY),
    ("transpose", "transpose of transpose: one, or x"): Sites(
        lambda d: d.op("transpose", d.op("transpose", d.x, permutation=d.order()), permutation=d.order()), ANY
    ),
    ("broadcast_in_dim", "broadcast of broadcast: one"): Sites(_broadcast_twice, ANY),
    ("broadcast_in_dim", "of what got axes of one element: of what had none"): Sites(_got_axes, ANY),
    **{
        (o, "of what was reshaped alike: reshaped once"): Sites(_reshaped_alike(o), FLOATS if o == "div" else NUMERIC)
        for o in ("add", "sub", "mul", "div", "neg")
    },
    ("concatenate", "of what was joined along the axis: all at once"): Sites(_joined_twice, ANY, rank=1),
    ("slice", "slice of slice: one"): Sites(_sliced_twice, ANY),
    ("rev", "along axes of one element: x"): Sites(
        lambda d: d.op("rev", d.x, dimensions=[k for k, n in enumerate(d.type.shape) if n <= 1]), ANY
    ),
    ("rev", "rev of rev along the same axes: x"): Sites(
        lambda d: d.op("rev", d.op("rev", d.x, dimensions=d.order()), dimensions=d.order()), ANY
    ),
    ("pad", "pad by nothing: x"): Sites(_padded_by_nothing, ANY),
    ("concatenate", "with arrays of no elements: without"): Sites(_with_nothing, ANY, rank=1),
    ("concatenate", "neighbouring parts of x: a part of x"): Sites(_neighbours, ANY, rank=1),
    ("slice", "of what was joined: of one operand"): Sites(_of_joined, ANY, rank=1),
    ("slice", "what was padded: x"): Sites(_unpadded, ANY, rank=1),
    ("split", "in one: x"): Sites(lambda d: d.op("split", d.x, sizes=[d.type.shape[0]], axis=0), ANY, rank=1),
    ("split", "of what was joined: the operands"): Sites(_split_of_joined, ANY, rank=1),
    ("add", "x and y padded with zeros, side by side: x and y joined"): Sites(_side_by_side, INEXACT, rank=1),
    ("convert_element_type", "to the same dtype: x"): Sites(_unchanged("convert_element_type"), ANY),
    ("convert_element_type", "to a wider dtype and back: x"): Sites(_there_and_back, frozenset(_WIDER)),
    ("convert_element_type", "by way of a wider float: at once"): Sites(_by_way_of, frozenset({"f16", "bf16", "f32"})),
    **{
        (f"reduce_{name}", "along axes of one element: reshape"): Sites(_reduced(f"reduce_{name}"), dtypes)
        for name, dtypes in (
            ("sum", INEXACT),
            ("max", REALS),
            ("min", REALS),
            ("and", frozenset({"bool"})),
            ("or", frozenset({"bool"})),
            ("xor", frozenset({"bool"})),
        )
    },
    ("reduce_sum", "of integers, along axes of one element: reshape"): Sites(_reduced("reduce_sum"), INTEGERS),
    ("reduce_prod", "of reals, along axes of one element: reshape"): Sites(_reduced("reduce_prod"), REALS),
    ("dynamic_slice", "of the operand's shape: x"): Sites(_taken_whole, ANY),
    ("dynamic_slice", "at a constant place: slice"): Sites(_at_a_place, ANY),
    ("dynamic_update_slice", "with an update of the operand's shape: the update"): Sites(
        lambda d: d.op("dynamic_update_slice", d.x, d.y, *_places(d)), ANY
    ),
    ("dot_general", "1 X = X, for the unit matrix 1"): Sites(_by_unit, INEXACT, rank=1),
    ("field", "the field of a record that is put together"): Sites(_field, ANY),
    ("select_n", "of equal cases: one"): Sites(_selected, ANY),
    ("select_n", "by a constant: that case"): Sites(_known_choice, ANY),
    ("select_n", "not p ? x : y = p ? y : x"): Sites(lambda d: d.op("select_n", d.op("not", d.p), d.x, d.y), ANY),
    ("not", "not not p = p"): Sites(lambda d: d.op("not", d.op("not", d.p)), frozenset({"bool"})),
    ("and", "p and p = p"): Sites(_pair("and"), frozenset({"bool"})),
    ("or", "p or p = p"): Sites(_pair("or"), frozenset({"bool"})),
    ("and", "p and true = p"): Sites(either(lambda d, x, y: d.op("and", x, y), lambda d: d.full(1)), frozenset({"bool"})),
    ("or", "p or false = p"): Sites(either(lambda d, x, y: d.op("or", x, y), lambda d: d.full(0)), frozenset({"bool"})),
}
"""By op and statement: every line of the table, and no other."""


@st.composite
def site(draw: Callable[[Any], Any], key: tuple[str, str]) -> tuple[Sketch, list[Value]]:
    """A sketch of x, y, p and q that has a site of this identity, and the results there."""
    sites = SITES[key]
    shapes = [s for s in SHAPES if len(s) >= sites.rank]
    type_ = TensorType(draw(st.sampled_from(sorted(sites.dtypes))), draw(st.sampled_from(shapes)))
    flags = type_.with_dtype("bool")
    sketch = Sketch({"x": type_, "y": type_, "p": flags, "q": flags})
    found = sites.make(Draw(draw, sketch, type_))
    return sketch, [found] if isinstance(found, Value) else list(found or ())
