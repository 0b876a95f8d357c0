"""Twins: a random graph of integers, and the same graph of floats, whose values and derivatives must agree to the bit.

No number is rounded and none wraps, for the integers are small; the rules are the same, since an integer's tangents are floats.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from tests.graphs.sketch import Sketch, Value, document, key
from tidu_cli.graph.graph import CaseTable, Document
from tidu_cli.graph.types import TensorType, tangent_type

GREATEST = {"i16": 2**14, "i32": 2**30, "i64": 2**50}
"""Of each dtype, a magnitude up to which integers neither wrap nor round in the float of their tangents."""


class Twins(NamedTuple):
    """A value of integers, the same of floats, and a bound of both."""

    whole: Value
    real: Value
    bound: int

    @property
    def shape(self) -> tuple[int, ...]:
        return self.whole.type.shape


class Pair:
    """Two graphs under construction, of integers and of floats; all nodes go to both."""

    def __init__(self, draw: Callable[[Any], Any], dtype: str, shape: tuple[int, ...]) -> None:
        self.draw, self.greatest = draw, GREATEST[dtype]
        n = TensorType(dtype, shape)
        cases = CaseTable()
        self.sketches = [Sketch({"n": t, "m": t, "i": "i32[]", "w": tangent_type(n)}, cases=cases) for t in (n, tangent_type(n))]
        whole, real = self.sketches
        self.twins = [Twins(a, b, 3) for a, b in zip(whole.inputs[:2], real.inputs[:2], strict=True)]

    def pick(self, suits: Callable[[Twins], bool] = lambda t: True) -> Twins | None:
        candidates = [t for t in self.twins[-5:] if suits(t)]
        return self.draw(st.sampled_from(candidates)) if candidates else None

    def apply(self, name: str, *twins: Twins | int, bound: int, **attrs: object) -> Twins | None:
        return self.apply_all(name, *twins, bound=bound, **attrs)[0]

    def apply_all(self, name: str, *twins: Twins | int, bound: int, **attrs: object) -> list[Twins | None]:
        """The op applied in both graphs; None where its values might be too great."""
        if bound > self.greatest:
            return [None]
        made = []
        for k, sketch in enumerate(self.sketches):
            operands = [sketch.inputs[2] if t == "i" else t[k] if isinstance(t, Twins) else t for t in twins]
            made.append(sketch.apply_all(name, *operands, **attrs))
        results = [Twins(a, b, bound) for a, b in zip(*made, strict=True)]
        self.twins += results
        return results


def _alike(pair: Pair) -> tuple[Twins, Twins]:
    x = pair.pick()
    return x, pair.pick(lambda t: t.shape == x.shape)


def _sum(pair: Pair) -> None:
    x, y = _alike(pair)
    pair.apply(pair.draw(st.sampled_from(["add", "sub"])), x, y, bound=x.bound + y.bound)


def _product(pair: Pair) -> None:
    x, y = _alike(pair)
    pair.apply("mul", x, y, bound=x.bound * y.bound)


def _unary(pair: Pair) -> None:
    x, name = pair.pick(), pair.draw(st.sampled_from(["neg", "abs", "sign", "square", "copy"]))
    pair.apply(name, x, bound=x.bound**2 if name == "square" else x.bound)


def _power(pair: Pair) -> None:
    x, y = pair.pick(), pair.draw(st.integers(0, 3))
    pair.apply("integer_pow", x, bound=max(x.bound, 1) ** max(y, 1), y=y)


def _extremum(pair: Pair) -> None:
    x, y = _alike(pair)
    pair.apply(pair.draw(st.sampled_from(["max", "min"])), x, y, bound=max(x.bound, y.bound))


def _clamp(pair: Pair) -> None:
    x, y = _alike(pair)
    low = pair.pick(lambda t: t.shape in ((), x.shape))
    if low is not None:
        pair.apply("clamp", low, x, y, bound=max(low.bound, x.bound, y.bound))


def _select(pair: Pair) -> None:
    x, y = _alike(pair)
    pair.apply("select_n", "i", x, y, y, bound=max(x.bound, y.bound))


def _with_axes(pair: Pair) -> Twins | None:
    return pair.pick(lambda t: t.whole.type.size > 0 and bool(t.shape))


def _reduction(pair: Pair) -> None:
    if (x := _with_axes(pair)) is None:
        return
    axis, name = pair.draw(st.integers(0, len(x.shape) - 1)), pair.draw(st.sampled_from(["sum", "prod", "max", "min"]))
    n = x.shape[axis]
    pair.apply(f"reduce_{name}", x, bound={"sum": n * x.bound, "prod": max(x.bound, 1) ** n}.get(name, x.bound), axes=(axis,))


def _cumulation(pair: Pair) -> None:
    if (x := _with_axes(pair)) is None:
        return
    axis, name = pair.draw(st.integers(0, len(x.shape) - 1)), pair.draw(st.sampled_from(["sum", "prod", "max", "min"]))
    bound = {"sum": x.shape[axis] * x.bound, "prod": max(x.bound, 1) ** x.shape[axis]}.get(name, x.bound)
    pair.apply(f"cum{name}", x, bound=bound, axis=axis, reverse=pair.draw(st.booleans()))


def _sort(pair: Pair) -> None:
    if (x := _with_axes(pair)) is None:
        return
    y, axis = pair.pick(lambda t: t.shape == x.shape), pair.draw(st.integers(0, len(x.shape) - 1))
    pair.apply_all("sort", x, y, bound=max(x.bound, y.bound), dimension=axis)


def _dot(pair: Pair) -> None:
    x, y = _alike(pair)
    if x.shape:
        bound = x.shape[0] * x.bound * y.bound
        pair.apply("dot_general", x, y, bound=bound, dimension_numbers=(((0,), (0,)), ((), ())))


def _move(pair: Pair) -> None:
    x = _with_axes(pair)
    if x is None:
        y = pair.pick()
        pair.apply(
            "broadcast_in_dim", y, bound=y.bound, shape=(2, *y.shape), broadcast_dimensions=tuple(range(1, 1 + len(y.shape)))
        )
        return
    rank, n = len(x.shape), x.shape[0]
    name, operands, attrs = pair.draw(
        st.sampled_from(
            [
                ("reshape", (x,), {"new_sizes": (x.whole.type.size,)}),
                ("transpose", (x,), {"permutation": tuple(reversed(range(rank)))}),
                ("rev", (x,), {"dimensions": (0,)}),
                ("expand_dims", (x,), {"dimensions": (0,)}),
                ("slice", (x,), {"start_indices": (n - 1, *[0] * (rank - 1)), "limit_indices": x.shape}),
                ("concatenate", (x, x), {"dimension": 0}),
                ("split", (x,), {"sizes": (1, n - 1), "axis": 0}),
                ("dynamic_slice", (x, *["i"] * rank), {"slice_sizes": (1, *x.shape[1:])}),
                ("dynamic_update_slice", (x, x, *["i"] * rank), {}),
            ]
        )
    )
    if x.whole.type.size < 20:
        pair.apply_all(name, *operands, bound=x.bound, **attrs)


def _pad(pair: Pair) -> None:
    x, value = _with_axes(pair), pair.pick(lambda t: not t.shape)
    if x is not None and value is not None:
        pair.apply("pad", x, value, bound=max(x.bound, value.bound), padding_config=((1, 0, 1), *((0, 0, 0) for _ in x.shape[1:])))


def _convert(pair: Pair) -> None:
    x = pair.pick()
    for k, sketch in enumerate(pair.sketches):
        wide = TensorType("i64") if k == 0 else TensorType("f64")
        back = TensorType(x[k].type.dtype)
        sketch.apply("convert_element_type", sketch.apply("convert_element_type", x[k], new_dtype=wide.dtype), new_dtype=back.dtype)
    made = [Value(s, s.builder.n_values - 1, x[k].type) for k, s in enumerate(pair.sketches)]
    pair.twins.append(Twins(made[0], made[1], x.bound))


MAKERS = (
    _sum,
    _product,
    _unary,
    _power,
    _extremum,
    _clamp,
    _select,
    _reduction,
    _cumulation,
    _sort,
    _dot,
    _move,
    _move,
    _pad,
    _convert,
)


@st.composite
def twins(draw: Callable[[Any], Any]) -> tuple[Document, Document, dict[Any, Any]]:
    """A graph of integers n and m, its twin of floats, and integers for both. Outputs are integers, and floats made of them."""
    dtype, shape = draw(st.sampled_from(sorted(GREATEST))), draw(st.sampled_from([(), (3,), (2, 2)]))
    pair = Pair(draw, dtype, shape)
    for make in draw(st.lists(st.sampled_from(MAKERS), min_size=1, max_size=6)):
        make(pair)
    last = pair.twins[-1]
    made = []
    for k, sketch in enumerate(pair.sketches):
        y, w = last[k], sketch.inputs[3]
        as_float = sketch.apply("convert_element_type", y, new_dtype=w.type.dtype) if k == 0 else y
        z = sketch.apply("sin", as_float)
        if z.type == w.type:
            z = sketch.apply("mul", z, w)
        made.append(document(sketch.build("f", {"y": y, "z": z})))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    values = {key(k): rng.integers(-3, 4, shape) for k in "nm"}
    return made[0], made[1], values | {key("i"): np.int32(rng.integers(0, 3)), key("w"): rng.uniform(-1, 1, shape)}
