"""For each line of the table of identities graphs in which it applies, of drawn types: `SITES`, by op and statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

from tests.graphs.sketch import Sketch, Value
from tests.identities.making import (
    ANY,
    SHAPES,
    SIGNED,
    WIDER,
    Draw,
    Sites,
    at_a_place,
    broadcast_twice,
    by_unit,
    by_way_of,
    either,
    field,
    got_axes,
    joined_twice,
    known_choice,
    moved_number,
    negative_scaled,
    neighbours,
    of_joined,
    padded_by_nothing,
    pair,
    places,
    reduced,
    reshaped_alike,
    reshaped_twice,
    scaled,
    selected,
    side_by_side,
    sliced_twice,
    split_of_joined,
    sum_of_equals,
    taken_whole,
    there_and_back,
    unchanged,
    unpadded,
    with_nothing,
)
from tidu_cli.graph.types import COMPLEXES, FLOATS, INEXACT, INTEGERS, NUMERIC, REALS, TensorType

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
    ("sub", "n - n = 0"): Sites(pair("sub"), INTEGERS),
    ("sub", "x - x = 0"): Sites(pair("sub"), INEXACT),
    ("sub", "x - (-y) = x + y"): Sites(lambda d: d.x - -d.y),
    ("mul", "1 x = x, of reals"): Sites(either(lambda d, x, y: x * y, lambda d: d.full(1)), REALS),
    ("mul", "1 z = z"): Sites(either(lambda d, x, y: x * y, lambda d: d.full(1)), COMPLEXES),
    ("mul", "(-1) x = -x"): Sites(lambda d: d.full(-1.0) * d.x, FLOATS),
    ("mul", "x (-1) = -x"): Sites(lambda d: d.x * d.full(-1.0), FLOATS),
    ("mul", "0 n = 0"): Sites(either(lambda d, x, y: x * y, Draw.zero), INTEGERS),
    ("mul", "0 x = 0"): Sites(either(lambda d, x, y: x * y, Draw.zero), INEXACT),
    ("mul", "(-x) (-y) = x y"): Sites(lambda d: -d.x * -d.y, FLOATS),
    ("mul", "(-x) c = x (-c)"): Sites(scaled("mul"), FLOATS),
    ("div", "x / 1 = x"): Sites(lambda d: d.x / d.full(1), FLOATS),
    ("div", "(-x) / (-y) = x / y"): Sites(lambda d: -d.x / -d.y, FLOATS),
    ("div", "(-x) / c = x / (-c)"): Sites(scaled("div"), FLOATS),
    ("neg", "-(-x) = x"): Sites(lambda d: d.op("neg", -d.x)),
    ("neg", "-(x c) = x (-c), -(x / c) = x / (-c)"): Sites(negative_scaled, FLOATS),
    ("neg", "-(x - y) = y - x"): Sites(lambda d: -(d.x - d.y), INEXACT),
    ("integer_pow", "x¹ = x"): Sites(lambda d: d.op("integer_pow", d.x, y=1)),
    ("integer_pow", "x⁰ = 1"): Sites(lambda d: d.op("integer_pow", d.x, y=0)),
    ("abs", "|-x| = |x|"): Sites(lambda d: d.op("abs", -d.x), REALS - (INTEGERS - SIGNED)),
    ("abs", "||x|| = |x|"): Sites(lambda d: d.op("abs", d.op("abs", d.x)), REALS),
    ("max", "max(x, x) = x"): Sites(pair("max"), FLOATS),
    ("min", "min(x, x) = x"): Sites(pair("min"), FLOATS),
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
    ("reduce_sum", "Σ c = n c, where no partial sum rounds"): Sites(sum_of_equals, FLOATS),
    **{
        (o, "of the same shape: x"): Sites(unchanged(o), ANY)
        for o in ("reshape", "expand_dims", "squeeze", "broadcast_in_dim", "slice", "copy")
    },
    **{(o, "reshape of reshape: one, or x"): Sites(reshaped_twice(o), ANY) for o in ("reshape", "expand_dims", "squeeze")},
    **{
        (o, "of a number repeated: the number repeated"): Sites(moved_number(o), ANY, rank=1)
        for o in ("reshape", "expand_dims", "squeeze", "transpose", "rev")
    },
    ("transpose", "axes in order: x"): Sites(lambda d: d.op("transpose", d.x, permutation=list(range(d.type.rank))), ANY),
    ("transpose", "transpose of transpose: one, or x"): Sites(
        lambda d: d.op("transpose", d.op("transpose", d.x, permutation=d.order()), permutation=d.order()), ANY
    ),
    ("broadcast_in_dim", "broadcast of broadcast: one"): Sites(broadcast_twice, ANY),
    ("broadcast_in_dim", "of what got axes of one element: of what had none"): Sites(got_axes, ANY),
    **{
        (o, "of what was reshaped alike: reshaped once"): Sites(reshaped_alike(o), FLOATS if o == "div" else NUMERIC)
        for o in ("add", "sub", "mul", "div", "neg")
    },
    ("concatenate", "of what was joined along the axis: all at once"): Sites(joined_twice, ANY, rank=1),
    ("slice", "slice of slice: one"): Sites(sliced_twice, ANY),
    ("rev", "along axes of one element: x"): Sites(
        lambda d: d.op("rev", d.x, dimensions=[k for k, n in enumerate(d.type.shape) if n <= 1]), ANY
    ),
    ("rev", "rev of rev along the same axes: x"): Sites(
        lambda d: d.op("rev", d.op("rev", d.x, dimensions=d.order()), dimensions=d.order()), ANY
    ),
    ("pad", "pad by nothing: x"): Sites(padded_by_nothing, ANY),
    ("concatenate", "with arrays of no elements: without"): Sites(with_nothing, ANY, rank=1),
    ("concatenate", "neighbouring parts of x: a part of x"): Sites(neighbours, ANY, rank=1),
    ("slice", "of what was joined: of one operand"): Sites(of_joined, ANY, rank=1),
    ("slice", "what was padded: x"): Sites(unpadded, ANY, rank=1),
    ("split", "in one: x"): Sites(lambda d: d.op("split", d.x, sizes=[d.type.shape[0]], axis=0), ANY, rank=1),
    ("split", "of what was joined: the operands"): Sites(split_of_joined, ANY, rank=1),
    ("add", "x and y padded with zeros, side by side: x and y joined"): Sites(side_by_side, INEXACT, rank=1),
    ("convert_element_type", "to the same dtype: x"): Sites(unchanged("convert_element_type"), ANY),
    ("convert_element_type", "to a wider dtype and back: x"): Sites(there_and_back, frozenset(WIDER)),
    ("convert_element_type", "by way of a wider float: at once"): Sites(by_way_of, frozenset({"f16", "bf16", "f32"})),
    **{
        (f"reduce_{name}", "along axes of one element: reshape"): Sites(reduced(f"reduce_{name}"), dtypes)
        for name, dtypes in (
            ("sum", INEXACT),
            ("max", REALS),
            ("min", REALS),
            ("and", frozenset({"bool"})),
            ("or", frozenset({"bool"})),
            ("xor", frozenset({"bool"})),
        )
    },
    ("reduce_sum", "of integers, along axes of one element: reshape"): Sites(reduced("reduce_sum"), INTEGERS),
    ("reduce_prod", "of reals, along axes of one element: reshape"): Sites(reduced("reduce_prod"), REALS),
    ("dynamic_slice", "of the operand's shape: x"): Sites(taken_whole, ANY),
    ("dynamic_slice", "at a constant place: slice"): Sites(at_a_place, ANY),
    ("dynamic_update_slice", "with an update of the operand's shape: the update"): Sites(
        lambda d: d.op("dynamic_update_slice", d.x, d.y, *places(d)), ANY
    ),
    ("dot_general", "1 X = X, for the unit matrix 1"): Sites(by_unit, INEXACT, rank=1),
    ("field", "the field of a record that is put together"): Sites(field, ANY),
    ("select_n", "of equal cases: one"): Sites(selected, ANY),
    ("select_n", "by a constant: that case"): Sites(known_choice, ANY),
    ("select_n", "not p ? x : y = p ? y : x"): Sites(lambda d: d.op("select_n", d.op("not", d.p), d.x, d.y), ANY),
    ("not", "not not p = p"): Sites(lambda d: d.op("not", d.op("not", d.p)), frozenset({"bool"})),
    ("and", "p and p = p"): Sites(pair("and"), frozenset({"bool"})),
    ("or", "p or p = p"): Sites(pair("or"), frozenset({"bool"})),
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
    results = sites.make(Draw(draw, sketch, type_))
    return sketch, [results] if isinstance(results, Value) else list(results or ())
