"""Convolutions: sums over windows, as networks have them: the kernel is not reversed (StableHLO's convolution).

Bilinear, and its adjoints are convolutions again: that for lhs slides the reversed kernel over the cotangent, which is dilated by
the strides; that for rhs slides the cotangent over lhs, batch and features having changed places. Groups of features become groups
of batches there, and the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Annotated, Any, cast

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import NUMERIC, TensorType
from tidu_cli.lax.arrays.dtypes import numpy_dtype
from tidu_cli.lax.linear_algebra.contraction import attrs_of_tangent, require_factors
from tidu_cli.lax.signal.sliding import Count, Counts, Padding, Sliding, convolving, slidings, spread, spread_places
from tidu_cli.rules.analysis import Spread, Spreading, adding, multiplying
from tidu_cli.rules.attrs import Axes, DTypeName
from tidu_cli.rules.catalogue import Caption, listed
from tidu_cli.rules.contract import Attrs, Batching, Example, Kernel, Transposition, Types
from tidu_cli.rules.families import as_dtype, bilinear, conj
from tidu_cli.rules.fields import Sized
from tidu_cli.rules.terms import Term, op

conv, reshape, rev, transpose = map(op, ("conv_general_dilated", "reshape", "rev", "transpose"))

Spec = Annotated[Axes, Sized(2)]


class ConvDimensionNumbers(Attrs):
    """Which axis is what: `lhs_spec` has batch, feature, and those along which windows slide; `rhs_spec` output feature, feature,
    and those of the window; `out_spec` batch, feature, and those that number the windows.
    """

    lhs_spec: Spec
    rhs_spec: Spec
    out_spec: Spec


class ConvAttrs(Attrs):
    """`window_strides`, `padding`, `lhs_dilation`, `rhs_dilation`: an entry for each axis along which windows slide, in padding
    [low, high]; negative padding takes elements away.

    `dimension_numbers`: which axis is what, as lists of axes: `lhs_spec` (batch, feature, and those along which windows slide),
    `rhs_spec` (output feature, feature, and those of the window) and `out_spec` (batch, feature, and those of the windows).

    `feature_group_count`: in how many groups lhs has its features, each of which has output features of its own.
    `batch_group_count`: in how many groups it has its batch. One of them is 1. `preferred_element_type`: as dot_general's.
    """

    window_strides: Counts
    padding: Padding
    lhs_dilation: Counts
    rhs_dilation: Counts
    dimension_numbers: ConvDimensionNumbers
    feature_group_count: Count = 1
    batch_group_count: Count = 1
    preferred_element_type: DTypeName | None = None


def _taken(type_: TensorType, spec: Sequence[int]) -> tuple[int, ...]:
    """The sizes of the axes in the order of a spec."""
    return tuple(type_.shape[axis] for axis in spec)


def _axes(attrs: ConvAttrs, lhs: Sequence[int], rhs: Sequence[int]) -> tuple[Sliding, ...]:
    """The windows along each axis, from sizes in the order of the specs. Raises TypeRuleError."""
    a = attrs
    return slidings(lhs[2:], rhs[2:], a.window_strides, a.padding, a.lhs_dilation, a.rhs_dilation, "lhs")


def _types(attrs: ConvAttrs, operands: Types) -> Types:
    lhs, rhs = require_factors(attrs.preferred_element_type, operands)
    numbers = attrs.dimension_numbers
    for name, spec, type_ in (("lhs_spec", numbers.lhs_spec, lhs), ("rhs_spec", numbers.rhs_spec, rhs)):
        if len(spec) != type_.rank:
            raise TypeRuleError(
                f"{name} {list(spec)} names {len(spec)} axes, {name[:3]} {type_} has {type_.rank}; use reshape first"
            )
    if len(numbers.out_spec) != lhs.rank or lhs.rank != rhs.rank:
        raise TypeRuleError(f"lhs {lhs}, rhs {rhs} and out_spec {list(numbers.out_spec)} must have equally many axes")
    for name, spec in numbers:
        if max(spec) >= lhs.rank:
            raise TypeRuleError(f"{name} {list(spec)}: axis {max(spec)} is out of range for {lhs.rank} axes")
    for name in ("window_strides", "padding", "lhs_dilation", "rhs_dilation"):
        if len(given := getattr(attrs, name)) != lhs.rank - 2:
            raise TypeRuleError(f"{name} has {len(given)} entries; lhs {lhs} has {lhs.rank - 2} axes along which windows slide")
    return (_result(attrs, lhs, rhs),)


def _result(attrs: ConvAttrs, lhs: TensorType, rhs: TensorType) -> TensorType:
    numbers, groups, batches = attrs.dimension_numbers, attrs.feature_group_count, attrs.batch_group_count
    (n, features, *_), (n_out, n_in, *window) = sizes = _taken(lhs, numbers.lhs_spec), _taken(rhs, numbers.rhs_spec)
    if groups > 1 and batches > 1:
        raise TypeRuleError(f"feature_group_count is {groups} and batch_group_count {batches}; one of them must be 1")
    if features != n_in * groups:
        raise TypeRuleError(
            f"lhs {lhs} has {features} features (axis {numbers.lhs_spec[1]}); rhs {rhs} takes {n_in} (axis {numbers.rhs_spec[1]})"
            + (f" in each of {groups} groups" if groups > 1 else "; transpose one, or set dimension_numbers")
        )
    for name, count, whose, size in (
        ("feature_group_count", groups, f"the {n_out} output features of rhs {rhs}", n_out),
        ("batch_group_count", batches, f"the {n_out} output features of rhs {rhs}", n_out),
        ("batch_group_count", batches, f"the batch of {n} of lhs {lhs}", n),
    ):
        if size % count:
            raise TypeRuleError(f"{name} {count} does not divide {whose}")
    if 0 in window:
        raise TypeRuleError(f"the window of rhs {rhs} is empty: its axes {list(numbers.rhs_spec[2:])} need an element at least")
    shape = (n // batches, n_out, *(along.count for along in _axes(attrs, *sizes)))
    ordered = tuple(shape[numbers.out_spec.index(axis)] for axis in range(len(shape)))
    return TensorType(attrs.preferred_element_type or lhs.dtype, ordered)


def _kernel(np: Any, attrs: ConvAttrs, operands: Types, results: Types) -> Kernel:
    numbers, (lhs, rhs) = attrs.dimension_numbers, operands
    groups, batches = attrs.feature_group_count, attrs.batch_group_count
    (n, _, *places), (n_out, n_in, *window) = sizes = _taken(lhs, numbers.lhs_spec), _taken(rhs, numbers.rhs_spec)
    axes = _axes(attrs, *sizes)
    convolved = convolving(np, axes)
    result = numpy_dtype(np, results[0].dtype)
    # Half precision accumulates in single, as XLA does.
    through = numpy_dtype(np, "f32") if results[0].dtype in ("f16", "bf16") else result
    split = (batches, n // batches, n_in, *places) if batches > 1 else (n, groups, n_in, *places)
    kernels = (groups * batches, n_out // (groups * batches), n_in, *window)
    shape = (n // batches, n_out, *(along.count for along in axes))
    order = tuple(map(numbers.out_spec.index, range(len(shape))))

    def convolution(x: Any, w: Any) -> Any:
        x = np.reshape(np.transpose(x, numbers.lhs_spec), split).astype(through, copy=False)
        w = np.reshape(np.transpose(w, numbers.rhs_spec), kernels).astype(through, copy=False)
        y = convolved(np.swapaxes(x, 0, 1) if batches > 1 else x, w)
        return np.transpose(np.reshape(y, shape), order).astype(result, copy=False)

    return convolution


def _work(attrs: ConvAttrs, operands: Types, results: Types) -> int:
    """That of zeros between and around elements; columns and what is added up take a few times the result besides."""
    sizes = _taken(operands[0], attrs.dimension_numbers.lhs_spec), _taken(operands[1], attrs.dimension_numbers.rhs_spec)
    each = max(TensorType(results[0].dtype).nbytes, 4)
    return each * sizes[0][0] * sizes[0][1] * spread_places(_axes(attrs, *sizes))


def _regrouped(x: Term, source: int, target: int, groups: int) -> Term:
    """x with the groups that are outermost within one axis outermost within another."""
    if groups == 1:
        return x
    shape = list(x.type.shape)
    shape[source] //= groups
    parted = reshape(x, new_sizes=(*shape[:source], groups, *shape[source:]))
    order = [axis for axis in range(len(shape) + 1) if axis != source]
    order.insert(target, source)
    shape[target] *= groups
    return reshape(transpose(parted, permutation=tuple(order)), new_sizes=tuple(shape))


def _swapped(spec: Sequence[int]) -> tuple[int, ...]:
    """A spec with its first two axes in each other's place."""
    return (spec[1], spec[0], *spec[2:])


def _adjoint(node: Transposition, active: int, other: Term, ct: Term) -> Term | None:
    if ct.type.size == 0:
        return None
    contribution = (_of_lhs, _of_rhs)[active](node, conj(as_dtype(other, ct.type.dtype)), ct)
    return as_dtype(contribution, node.types[active].dtype)


def _of_lhs(node: Transposition, rhs: Term, ct: Term) -> Term:
    a, numbers, lhs = node.attrs, node.attrs.dimension_numbers, node.types[0]
    groups = a.feature_group_count * a.batch_group_count
    axes = _axes(a, _taken(lhs, numbers.lhs_spec), _taken(rhs.type, numbers.rhs_spec))
    kernel = _regrouped(rhs, numbers.rhs_spec[0], numbers.rhs_spec[1], groups)
    ct_lhs = conv(
        ct,
        rev(kernel, dimensions=numbers.rhs_spec[2:]) if numbers.rhs_spec[2:] else kernel,
        window_strides=a.lhs_dilation,
        padding=tuple(along.adjoint_padding for along in axes),
        lhs_dilation=a.window_strides,
        rhs_dilation=a.rhs_dilation,
        dimension_numbers={"lhs_spec": numbers.out_spec, "rhs_spec": _swapped(numbers.rhs_spec), "out_spec": numbers.lhs_spec},
        feature_group_count=groups,
        preferred_element_type=a.preferred_element_type,
    )
    return _regrouped(ct_lhs, numbers.lhs_spec[1], numbers.lhs_spec[0], a.batch_group_count)


def _of_rhs(node: Transposition, lhs: Term, ct: Term) -> Term:
    a, numbers, rhs = node.attrs, node.attrs.dimension_numbers, node.types[1]
    padding = []
    for along in _axes(a, _taken(lhs.type, numbers.lhs_spec), _taken(rhs, numbers.rhs_spec)):
        window, elements = spread(along.window, along.dilation), spread(along.n, along.base)
        padding.append((along.low, spread(along.count, along.stride) - elements + window - along.low - 1))
    lhs_spec, rhs_spec, out_spec = map(_swapped, (numbers.lhs_spec, numbers.out_spec, numbers.rhs_spec))
    return conv(
        lhs,
        ct,
        window_strides=a.rhs_dilation,
        padding=tuple(padding),
        lhs_dilation=a.lhs_dilation,
        rhs_dilation=a.window_strides,
        dimension_numbers={"lhs_spec": lhs_spec, "rhs_spec": rhs_spec, "out_spec": out_spec},
        feature_group_count=a.batch_group_count,
        batch_group_count=a.feature_group_count,
        preferred_element_type=a.preferred_element_type,
    )


def _batch_into(x: Term, axis: int, groups: int = 1) -> Term:
    """x with its first axis, the batch, within another (numbered without it), after the groups there."""
    size, *shape = x.type.shape
    order = list(range(1, len(shape) + 1))
    if groups == 1:
        order.insert(axis, 0)
        moved = transpose(x, permutation=tuple(order)) if axis else x
    else:
        parted = reshape(x, new_sizes=(size, *shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :]))
        order = list(range(1, len(shape) + 2))
        order.insert(axis + 1, 0)
        moved = transpose(parted, permutation=tuple(order))
    shape[axis] *= size
    return reshape(moved, new_sizes=tuple(shape))


def _batch_out_of(y: Term, axis: int, size: int, groups: int) -> Term:
    """The inverse: the batch as first axis."""
    shape = list(y.type.shape)
    rest = shape[axis] // size
    parted = reshape(y, new_sizes=(*shape[:axis], groups, size, rest // groups, *shape[axis + 1 :]))
    order = [axis + 1, *(k for k in range(len(shape) + 2) if k != axis + 1)]
    shape[axis] = rest
    return reshape(transpose(parted, permutation=tuple(order)), new_sizes=(size, *shape))


def _batch(node: Batching) -> Sequence[Term]:
    (x, w), a, numbers, size = node.operands, node.attrs, node.attrs.dimension_numbers, node.size
    if not size:
        (result,) = _types(a, node.types)
        return [x.trace.full(0, result.with_shape((0, *result.shape)))]
    groups, changed, place = 1, {}, numbers.out_spec[1]
    if all(node.batched):
        # Groups among themselves: one more factor of whichever count there is.
        which, axis = ("batch_group_count", 0) if a.batch_group_count > 1 else ("feature_group_count", 1)
        x, w = _batch_into(x, numbers.lhs_spec[axis]), _batch_into(w, numbers.rhs_spec[0])
        changed = {which: getattr(a, which) * size}
    elif node.batched[0]:
        x, place = _batch_into(x, numbers.lhs_spec[0], a.batch_group_count), numbers.out_spec[0]
    else:
        groups = a.feature_group_count * a.batch_group_count
        w = _batch_into(w, numbers.rhs_spec[0], groups)
    return [_batch_out_of(conv(x, w, **(dict(a) | changed)), place, size, groups)]


def _spreads(node: Spreading) -> Sequence[Spread]:
    """Along windows places depend on the elements in them; features, and batches in groups, on those of their group."""
    a, (lhs, rhs), numbers = node.attrs, node.types, node.attrs.dimension_numbers
    sizes = _taken(lhs, numbers.lhs_spec), _taken(rhs, numbers.rhs_spec)
    spec, out = (numbers.lhs_spec, numbers.rhs_spec)[node.k], numbers.out_spec
    (n_out, n_in, *_), axes = sizes[1], _axes(a, *sizes)
    where: list[Spread] = [(out[2 + k], spec[2 + k], along.met if node.k else along.pairs) for k, along in enumerate(axes)]
    if node.k:  # each output feature has a kernel of its own
        return [*where, (out[1], spec[0], None)]
    per_group = n_out // a.feature_group_count
    grouped = [(o, o // per_group * n_in + i) for o in range(n_out) for i in range(n_in)] if a.feature_group_count > 1 else None
    where += [(out[0], spec[0], None)] * (a.batch_group_count == 1)
    return [*where, (out[1], spec[1], grouped)] if grouped else where


def _flops(attrs: ConvAttrs, operands: Types, results: Types) -> int:
    """A product and a sum for each element in each window, and each pair of features; those with padding are not counted."""
    (lhs, rhs), (result,), numbers = operands, results, attrs.dimension_numbers
    sizes = _taken(lhs, numbers.lhs_spec), _taken(rhs, numbers.rhs_spec)
    pairs = prod(along.n_pairs for along in _axes(attrs, *sizes))
    n_out, n_in = sizes[1][:2]
    return (multiplying(result) + adding(result)) * (sizes[0][0] // attrs.batch_group_count) * n_out * n_in * pairs


def _caption(case: Case, operands: Sequence[str]) -> Caption:
    attrs = cast(ConvAttrs, case.attrs)
    groups = attrs.feature_group_count * attrs.batch_group_count
    told: list[tuple[str, Sequence[Any], Callable[[Any], bool]]] = [
        ("strides", attrs.window_strides, lambda n: n != 1),
        ("padded", [f"{low}:{high}" for low, high in attrs.padding], lambda edges: edges != "0:0"),
        ("spread", attrs.lhs_dilation, lambda n: n != 1),
        ("window spread", attrs.rhs_dilation, lambda n: n != 1),
    ]
    words = [f"{name} {listed(values)}" for name, values, says in told if any(map(says, values))]
    words += [f"{groups} groups"] * (groups > 1)
    return Caption(f"{operands[0]} ∗ {operands[1]}", "the convolution", label=", ".join(words) or None)


def _numbers(lhs: Sequence[int], rhs: Sequence[int], out: Sequence[int]) -> dict[str, list[int]]:
    return {"lhs_spec": list(lhs), "rhs_spec": list(rhs), "out_spec": list(out)}


def _example(lhs: str, rhs: str, numbers: dict[str, list[int]], **attrs: Any) -> Example:
    rank = len(numbers["lhs_spec"]) - 2
    plain = {"window_strides": [1] * rank, "padding": [[0, 0]] * rank, "lhs_dilation": [1] * rank, "rhs_dilation": [1] * rank}
    return Example((lhs, rhs), plain | {"dimension_numbers": numbers} | attrs)


_NCW, _NCHW = _numbers([0, 1, 2], [0, 1, 2], [0, 1, 2]), _numbers(range(4), range(4), range(4))
_NHWC = _numbers([0, 3, 1, 2], [3, 2, 0, 1], [0, 3, 1, 2])

PRIMITIVES = (
    bilinear(
        "conv_general_dilated",
        _types,
        _kernel,
        _adjoint,
        attrs_of_tangent=attrs_of_tangent,
        batch=_batch,
        sparsity=_spreads,
        attrs=ConvAttrs,
        dtypes=NUMERIC,
        examples=(
            _example("T[2,3,5]", "T[4,3,2]", _NCW, window_strides=[2], padding=[[1, 0]]),
            _example("f64[1,2,4,5]", "f64[3,2,2,3]", _NCHW, padding=[[1, 1], [2, -1]], window_strides=[2, 1]),
            _example("c128[2,4,5,2]", "c128[2,3,2,3]", _NHWC, lhs_dilation=[2, 3], rhs_dilation=[3, 1], window_strides=[3, 2]),
            _example("f64[2,4,5]", "f64[6,2,2]", _NCW, feature_group_count=2, padding=[[0, 1]]),
            _example("f64[4,3,5]", "f64[6,3,2]", _NCW, batch_group_count=2, rhs_dilation=[2]),
        ),
        fresh=True,
        flops=_flops,
        work=_work,
        formula="Σ lhs · rhs over features and each window",
        summary="convolution, the kernel not reversed; windows of lhs slide with strides, padding, dilations and groups",
        caption=_caption,
    ),
)
