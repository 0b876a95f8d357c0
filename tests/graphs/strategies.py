"""Hypothesis strategies: random valid documents whose values stay tame, so that derivatives can be compared in floating point."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from tests.graphs.sketch import Sketch, Value, document
from tidu_cli.graph.graph import Binding, CaseTable, Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import COMPLEXES, TensorType

Draw = Callable[[st.SearchStrategy], object]
Maker = Callable[["Pool"], "Value | None"]

SHAPES = ((), (2,), (3,), (2, 3))
F64, C128 = "f64", "c128"
seeds = st.integers(0, 2**32 - 1)


class Pool:
    """The values that a graph under construction may read, its own and those of earlier graphs."""

    def __init__(self, draw: Draw, sketch: Sketch, values: list[Value]) -> None:
        self.draw, self.sketch, self.values = draw, sketch, values

    def pick(self, suits: Callable[[TensorType], bool] = lambda t: t.inexact) -> Value | None:
        """Some value of a type that suits; later ones more often, so that graphs are deep."""
        candidates = [v for v in self.values if suits(v.type)]
        if not candidates:
            return None
        if self.draw(st.booleans()):
            candidates = candidates[-3:]
        return self.draw(st.sampled_from(candidates))

    def tame(self, value: Value, limit: float) -> Value:
        """The value, scaled down where it might exceed `limit` in magnitude."""
        if value.bound <= limit:
            return value
        return self.apply("mul", value, self.sketch.full(limit / value.bound, value.type), bound=limit)

    def apply(self, op: str, *values: Value, bound: float, **attrs: object) -> Value:
        made = self.sketch.apply(op, *values, bound=bound, **attrs)
        self.values.append(made)
        return made

    def away_from_zero(self, value: Value) -> Value:
        """6 + v², of which the real part is 2 at least, also where v is complex."""
        v = self.tame(value, 2)
        return self.apply("add", self.apply("mul", v, v, bound=4), self.sketch.full(6, v.type), bound=10)


def _pair(pool: Pool) -> tuple[Value, Value] | None:
    x = pool.pick()
    y = None if x is None else pool.pick(lambda t: t == x.type)
    return None if x is None or y is None else (x, y)


def _unary(op: str, *, limit: float, bound: float, complex_bound: float | None = None) -> Maker:
    def make(pool: Pool) -> Value | None:
        x = pool.pick(lambda t: t.inexact and (complex_bound is not None or not t.complex))
        if x is None:
            return None
        x = pool.tame(x, limit)
        return pool.apply(op, x, bound=complex_bound if x.type.complex else bound)

    return make


def _sum(op: str) -> Maker:
    def make(pool: Pool) -> Value | None:
        if (pair := _pair(pool)) is None:
            return None
        x, y = pool.tame(pair[0], 32), pool.tame(pair[1], 32)
        return pool.apply(op, x, y, bound=x.bound + y.bound)

    return make


def _mul(pool: Pool) -> Value | None:
    if (pair := _pair(pool)) is None:
        return None
    x, y = pool.tame(pair[0], 4), pool.tame(pair[1], 4)
    return pool.apply("mul", x, y, bound=x.bound * y.bound)


def _div(pool: Pool) -> Value | None:
    if (pair := _pair(pool)) is None:
        return None
    return pool.apply("div", pair[0], pool.away_from_zero(pair[1]), bound=pair[0].bound / 2)


def _neg(pool: Pool) -> Value | None:
    x = pool.pick()
    return None if x is None else pool.apply("neg", x, bound=x.bound)


def _of_positive(op: str) -> Maker:
    def make(pool: Pool) -> Value | None:
        x = pool.pick()
        return None if x is None else pool.apply(op, pool.away_from_zero(x), bound=4)

    return make


def _pow(pool: Pool) -> Value | None:
    if (pair := _pair(pool)) is None:
        return None
    return pool.apply("pow", pool.away_from_zero(pair[0]), pool.tame(pair[1], 1), bound=24)


def _integer_pow(pool: Pool) -> Value | None:
    x, y = pool.pick(), pool.draw(st.integers(-2, 4))
    if x is None:
        return None
    x = pool.away_from_zero(x) if y < 0 else pool.tame(x, 2)
    return pool.apply("integer_pow", x, y=y, bound=1 if y < 0 else 2.0**y)


def _to_complex(pool: Pool) -> Value | None:
    if (x := pool.pick(lambda t: t.dtype == F64)) is None:
        return None
    if pool.draw(st.booleans()):
        return pool.apply("convert_element_type", x, new_dtype=C128, bound=x.bound)
    y = pool.pick(lambda t: t == x.type)
    return pool.apply("complex", x, y, bound=x.bound + y.bound)


def _of_complex(pool: Pool) -> Value | None:
    if (z := pool.pick(lambda t: t.dtype in COMPLEXES)) is None:
        return None
    op = pool.draw(st.sampled_from(["real", "imag", "conj", "convert_element_type"]))
    attrs = {"new_dtype": F64} if op == "convert_element_type" else {}
    return pool.apply(op, z, bound=z.bound, **attrs)


def _reduce_sum(pool: Pool) -> Value | None:
    if (x := pool.pick(lambda t: t.inexact and t.rank > 0)) is None:
        return None
    axes = pool.draw(st.lists(st.integers(0, x.type.rank - 1), unique=True))
    return pool.apply("reduce_sum", x, axes=axes, bound=x.bound * x.type.size)


def _move(pool: Pool) -> Value | None:
    """broadcast_in_dim, reshape or transpose."""
    if (x := pool.pick()) is None:
        return None
    if x.type.rank == 2 and pool.draw(st.booleans()):
        return pool.apply("transpose", x, permutation=(1, 0), bound=x.bound)
    if x.type.rank == 2:
        return pool.apply("reshape", x, new_sizes=(x.type.size,), bound=x.bound)
    n = x.type.shape[0] if x.type.rank else 1
    if x.type.rank == 1 and pool.draw(st.booleans()):
        x = pool.apply("reshape", x, new_sizes=(n, 1) if pool.draw(st.booleans()) else (1, n), bound=x.bound)
        wide = tuple(m if m > 1 else 2 for m in x.type.shape)
        return pool.apply("broadcast_in_dim", x, shape=wide, broadcast_dimensions=(0, 1), bound=x.bound)
    shape, axes = pool.draw(
        st.sampled_from([((2, n), (1,)), ((n, 3), (0,))] if x.type.rank else [((2,), ()), ((3,), ()), ((2, 3), ())])
    )
    return pool.apply("broadcast_in_dim", x, shape=shape, broadcast_dimensions=axes, bound=x.bound)


def _dot_general(pool: Pool) -> Value | None:
    if (x := pool.pick(lambda t: t.inexact and t.rank > 0)) is None:
        return None
    if (y := pool.pick(lambda t: t.dtype == x.type.dtype and set(t.shape) & set(x.type.shape))) is None:
        return None
    matches = [(i, j) for i, m in enumerate(x.type.shape) for j, n in enumerate(y.type.shape) if m == n]
    i, j = pool.draw(st.sampled_from(matches))
    x, y = pool.tame(x, 4), pool.tame(y, 4)
    kind = pool.draw(st.sampled_from(["contract", "batch", "both"]))
    contract, batch = ([i], [j]), ([], [])
    if kind == "batch":
        contract, batch = batch, contract
    elif kind == "both":
        rest = [(a, b) for a, b in matches if a != i and b != j]
        if rest:
            a, b = pool.draw(st.sampled_from(rest))
            batch = [a], [b]
    if x.type.rank + y.type.rank - 2 * (len(contract[0])) - len(batch[0]) > 2:
        return None
    return pool.apply("dot_general", x, y, dimension_numbers=(contract, batch), bound=16 * x.type.shape[i])


def _comparison(pool: Pool) -> Value | None:
    x = pool.pick(lambda t: t.dtype == F64)
    y = None if x is None else pool.pick(lambda t: t == x.type)
    if x is None or y is None:
        return None
    op = pool.draw(st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]))
    return pool.apply(op, x, y, bound=1)


def _select(pool: Pool) -> Value | None:
    if (pair := _pair(pool)) is None:
        return None
    which = pool.pick(lambda t: t.dtype in ("bool", "i32") and t.shape in ((), pair[0].type.shape))
    if which is None:
        return None
    return pool.apply("select_n", which, *pair, bound=max(pair[0].bound, pair[1].bound))


def _extremum(op: str) -> Maker:
    def make(pool: Pool) -> Value | None:
        x = pool.pick(lambda t: t.dtype == F64)
        y = None if x is None else pool.pick(lambda t: t == x.type)
        return None if x is None or y is None else pool.apply(op, x, y, bound=max(x.bound, y.bound))

    return make


def _kinked(pool: Pool) -> Value | None:
    op = pool.draw(st.sampled_from(["abs", "sign", "stop_gradient", "reduce_max"]))
    if op == "reduce_max":
        x = pool.pick(lambda t: t.dtype == F64 and t.rank > 0)
        return None if x is None else pool.apply(op, x, axes=[0], bound=x.bound)
    if (x := pool.pick(lambda t: t.dtype == F64 or (op == "stop_gradient" and t.inexact))) is None:
        return None
    return pool.apply(op, x, bound=x.bound)


def _through_integers(pool: Pool) -> Value | None:
    if (x := pool.pick(lambda t: t.dtype == F64)) is None:
        return None
    rounded = pool.apply("convert_element_type", x, new_dtype="i32", bound=x.bound)
    return pool.apply("convert_element_type", rounded, new_dtype=F64, bound=x.bound)


ELEMENTWISE: tuple[Maker, ...] = (
    _sum("add"),
    _mul,
    _mul,
    _neg,
    _unary("tanh", limit=1, bound=1, complex_bound=1.6),
    _unary("sin", limit=2, bound=1, complex_bound=3.8),
    _unary("cos", limit=2, bound=1, complex_bound=3.8),
    _unary("logistic", limit=2, bound=1, complex_bound=1.2),
    _unary("exp", limit=2, bound=7.4, complex_bound=7.4),
    _div,
    _integer_pow,
)
"""Smooth elementwise operations whose derivative is one linear node per operand."""

SMOOTH: tuple[Maker, ...] = (
    *ELEMENTWISE,
    _sum("sub"),
    _of_positive("sqrt"),
    _of_positive("log"),
    _of_positive("log1p"),
    _pow,
    _to_complex,
    _of_complex,
    _reduce_sum,
    _move,
    _move,
    _dot_general,
    _dot_general,
)

ANY: tuple[Maker, ...] = (
    *SMOOTH,
    _comparison,
    _comparison,
    _select,
    _select,
    _extremum("max"),
    _extremum("min"),
    _kinked,
    _through_integers,
)
"""Also what has kinks, jumps or no derivative at all."""

REAL: tuple[Maker, ...] = tuple(maker for maker in ANY if maker not in (_to_complex, _of_complex))
"""Those that make no complex numbers."""


@st.composite
def documents(
    draw: Draw,
    *,
    makers: tuple[Maker, ...] = SMOOTH,
    dtypes: tuple[str, ...] = (F64, C128),
    shapes: tuple[tuple[int, ...], ...] = SHAPES,
    max_nodes: int = 8,
    max_graphs: int = 3,
    bindings: bool = True,
) -> Document:
    """Documents of up to `max_graphs` graphs that refer to one another, share inputs by key, and bind inputs to values.

    Outputs may be inputs, values of other graphs, or one value under several keys; inputs may be unused.
    """
    types = st.builds(TensorType, st.sampled_from(dtypes), st.sampled_from(shapes))
    declared = dict(zip("xyz", draw(st.lists(types, min_size=1, max_size=3)), strict=False))
    cases, graphs, earlier, bound = CaseTable(), [], [], []
    for number in range(draw(st.integers(1, max_graphs))):
        wanted = draw(st.lists(st.sampled_from(sorted(declared)), min_size=0 if number else 1, unique=True))
        inputs = {name: declared[name] for name in wanted}
        value_of: dict[str, Value] = {}
        if bindings and earlier and draw(st.booleans()):
            value = draw(st.sampled_from(earlier))
            inputs[f"b{number}"], value_of[f"b{number}"] = value.type, value
            bound.append(Binding(Key(f"b{number}"), value.sketch.number, value.id))
        sketch = Sketch(inputs, cases=cases, number=number)
        own = [
            Value(sketch, v.id, v.type, value_of[name].bound if name in value_of else 2.2)
            for name, v in zip(inputs, sketch.inputs, strict=True)
        ]
        pool = Pool(draw, sketch, [*earlier, *own])
        for make in draw(st.lists(st.sampled_from(makers), min_size=1, max_size=max_nodes)):
            make(pool)
        outputs = draw(st.lists(st.sampled_from(pool.values[-4:] + own), min_size=1, max_size=3))
        graphs.append(sketch.build("fgh"[number], {f"{'uvw'[number]}{k}": value for k, value in enumerate(outputs)}))
        earlier = [v for v in pool.values if v.sketch is sketch] + earlier[:4]
    return document(*graphs, bindings=tuple(bound))
