"""What only moves elements, and constants: other views of what is in memory. Functions from the unit, a case and views to views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.c.elements import literal
from tidu_cli.adapters.c.views import CONSTANT, COUNT, View
from tidu_cli.graph.graph import Case
from tidu_cli.graph.sizes.open import OpenSize, larger
from tidu_cli.lax.arrays.joining import size_literal
from tidu_cli.lax.arrays.structural import literal_array


def zeros(dtype: str, shape: Sequence[int]) -> View:
    """Zeros, which take no memory."""
    return View(dtype, CONSTANT, 0, tuple(shape), (0,) * len(shape), literal(dtype, 0))


def _constant(unit: Any, case: Case, reads: list[View]) -> list[View]:
    type_: Any = case.results[0]
    attrs: Any = case.attrs
    dtype = unit.module.dtype(type_)
    if case.op == "size" and isinstance(attrs.expression, OpenSize):
        number = f"((int64_t){unit.module.sizes.spelled(attrs.expression)})"
        return [View(dtype, CONSTANT, 0, (), (), unit.module.convert("i64", dtype).format(number))]
    array = literal_array(np, size_literal(attrs) if case.op == "size" else attrs.value)
    flat = array.reshape(-1)
    if not flat.size:
        return [zeros(dtype, type_.shape)]
    if flat.tobytes() == flat[:1].tobytes() * flat.size:
        return [View(dtype, CONSTANT, 0, type_.shape, (0,) * type_.rank, literal(dtype, flat[0]))]
    view = unit.root(dtype, type_.shape, -1)
    unit.places[view.root] = unit.module.constant(dtype, flat), 0
    return [view]


def _iota(unit: Any, case: Case, reads: list[View]) -> list[View]:
    type_: Any = case.results[0]
    strides = [int(k == case.attrs.dimension) for k in range(type_.rank)]  # type: ignore[attr-defined]
    return [View(unit.module.dtype(type_), COUNT, 0, type_.shape, tuple(strides))]


def _reshape(unit: Any, case: Case, reads: list[View]) -> list[View]:
    shape = case.results[0].shape  # type: ignore[union-attr]
    view = reads[0].reshaped(shape)
    if view is None:
        view = unit.element("{0}", reads, reads[0].shape, reads[0].dtype).reshaped(shape)
    return [view]


def _slice(unit: Any, case: Case, reads: list[View]) -> list[View]:
    a: Any = case.attrs
    shape = case.results[0].shape  # type: ignore[union-attr]
    return [reads[0].part(a.start_indices, shape, a.strides or (1,) * len(shape))]


def _split(unit: Any, case: Case, reads: list[View]) -> list[View]:
    a: Any = case.attrs
    views, begin = [], 0
    for type_ in case.results:
        shape = type_.shape  # type: ignore[union-attr]
        views.append(reads[0].part([begin if k == a.axis else 0 for k in range(len(shape))], shape, (1,) * len(shape)))
        begin += shape[a.axis]
    return views


def _rev(unit: Any, case: Case, reads: list[View]) -> list[View]:
    (x,), axes = reads, set(case.attrs.dimensions)  # type: ignore[attr-defined]
    starts = [larger(n - 1, 0) if k in axes else 0 for k, n in enumerate(x.shape)]
    return [x.part(starts, x.shape, [-1 if k in axes else 1 for k in range(len(x.shape))])]


def _transpose(unit: Any, case: Case, reads: list[View]) -> list[View]:
    return [reads[0].transposed(case.attrs.permutation)]  # type: ignore[attr-defined]


def _broadcast(unit: Any, case: Case, reads: list[View]) -> list[View]:
    a: Any = case.attrs
    return [reads[0].broadcast(a.shape, a.broadcast_dimensions)]


def nothing(unit: Any, case: Case, reads: list[View]) -> list[View]:
    """Results without elements, and what a loop without steps carries."""
    a: Any = case.attrs
    carried = reads[a.num_consts : a.num_consts + a.num_carry] if case.op == "scan" else []
    return [*carried, *(zeros(unit.module.dtype(t), t.shape) for t in case.results[len(carried) :])]  # type: ignore[union-attr]


def _itself(unit: Any, case: Case, reads: list[View]) -> list[View]:
    return reads


VIEWS: dict[str, Callable[[Any, Case, list[View]], list[View]]] = {
    "constant": _constant, "size": _constant, "iota": _iota,
    "reshape": _reshape, "squeeze": _reshape, "expand_dims": _reshape, "slice": _slice,
    "split": _split, "rev": _rev, "transpose": _transpose, "broadcast_in_dim": _broadcast, "copy": _itself,
    "stop_gradient": _itself, "optimization_barrier": _itself,
}  # fmt: skip
