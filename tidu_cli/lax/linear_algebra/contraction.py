"""dot_general: products of arrays summed over contracting axes, with batch axes (StableHLO's dot_general)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Annotated, Any, cast

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import COMPLEXES, FLOATS, INTEGERS, NUMERIC, TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.rules.analysis import Spread, Spreading, products
from tidu_cli.rules.attrs import Axes, DTypeName
from tidu_cli.rules.batching import later, with_batch_axis
from tidu_cli.rules.catalogue import Caption, arrays, listed
from tidu_cli.rules.contract import JVP, Attrs, Batching, Example, Kernel, Transposition, Types
from tidu_cli.rules.families import as_dtype, bilinear, conj, require_dtype
from tidu_cli.rules.fields import After
from tidu_cli.rules.terms import Term, op

Pair = tuple[Axes, Axes]


def _matched(numbers: tuple[Pair, Pair]) -> tuple[Pair, Pair]:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers
    if len(lhs_contract) != len(rhs_contract) or len(lhs_batch) != len(rhs_batch):
        raise ValueError("lhs and rhs must contract and batch equally many axes")
    if set(lhs_contract) & set(lhs_batch) or set(rhs_contract) & set(rhs_batch):
        raise ValueError("an axis cannot be both contracting and batch")
    return numbers


class DotGeneralAttrs(Attrs):
    """`dimension_numbers`: [[lhs contracting, rhs contracting], [lhs batch, rhs batch]], each a list of axes.

    `preferred_element_type`: the dtype of the result and of the accumulation; by default that of the operands.
    """

    dimension_numbers: Annotated[tuple[Pair, Pair], After(_matched)]
    preferred_element_type: DTypeName | None = None


dot_general, transpose = op("dot_general"), op("transpose")


def _kept(type_: TensorType, contract: Sequence[int], batch: Sequence[int]) -> tuple[int, ...]:
    return tuple(k for k in range(type_.rank) if k not in contract and k not in batch)


def _kind(dtype: str) -> int:
    return next(rank for rank, kind in enumerate((frozenset({"bool"}), INTEGERS, FLOATS, COMPLEXES)) if dtype in kind)


def require_factors(preferred: str | None, operands: Types) -> Types:
    """The two arrays of which products are added up, in the `preferred_element_type` that an attr names. Raises TypeRuleError."""
    require_dtype(NUMERIC, operands)
    lhs, rhs = operands
    if lhs.dtype != rhs.dtype:
        raise TypeRuleError(f"type mismatch: lhs is {lhs}, rhs is {rhs}; use convert_element_type first")
    if preferred not in (None, *NUMERIC):
        raise TypeRuleError(f"preferred_element_type {preferred} is not a dtype of numbers")
    if preferred is not None and _kind(preferred) < _kind(lhs.dtype):
        raise TypeRuleError(f"preferred_element_type {preferred} cannot hold products of {lhs.dtype}; convert the result instead")
    return operands


def _types(attrs: DotGeneralAttrs, operands: Types) -> Types:
    lhs, rhs = require_factors(attrs.preferred_element_type, operands)
    contracting, batch = attrs.dimension_numbers
    for kind, (lhs_axes, rhs_axes) in (("contracting", contracting), ("batch", batch)):
        for side, type_, axes in (("lhs", lhs, lhs_axes), ("rhs", rhs, rhs_axes)):
            for axis in axes:
                if axis >= type_.rank:
                    raise TypeRuleError(f"{kind} dimensions: {side} {type_} has no axis {axis}")
        for i, j in zip(lhs_axes, rhs_axes, strict=True):
            if lhs.shape[i] != rhs.shape[j]:
                raise TypeRuleError(
                    f"{kind} dimensions differ: lhs {lhs} axis {i} is {lhs.shape[i]}, rhs {rhs} axis {j} is {rhs.shape[j]}"
                )
    shape = (
        *(lhs.shape[k] for k in batch[0]),
        *(lhs.shape[k] for k in _kept(lhs, contracting[0], batch[0])),
        *(rhs.shape[k] for k in _kept(rhs, contracting[1], batch[1])),
    )
    return (TensorType(attrs.preferred_element_type or lhs.dtype, shape),)


def _kernel(np: Any, attrs: DotGeneralAttrs, operands: Types, results: Types) -> Kernel:
    product = _product(np, attrs, operands, results[0].shape)
    result = numpy_dtype(np, results[0].dtype)
    # Half precision accumulates in single, as XLA does; BLAS has no half precision anyway.
    through = numpy_dtype(np, "f32") if results[0].dtype in ("f16", "bf16") else result
    if results[0].dtype == operands[0].dtype and through == result:
        return product
    return lambda lhs, rhs: np.asarray(product(lhs.astype(through), rhs.astype(through))).astype(result)


def _product(np: Any, attrs: DotGeneralAttrs, operands: Types, shape: tuple[int, ...]) -> Kernel:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = attrs.dimension_numbers
    lhs, rhs = operands
    if not lhs_contract:
        return _outer_product(np, attrs, operands, shape)
    if not lhs_batch and len(lhs_contract) == 1 and lhs.rank <= 2 and rhs.rank <= 2:
        # A transposed view costs nothing: BLAS reads it as it is.
        flip_lhs, flip_rhs = lhs.rank == 2 and lhs_contract[0] == 0, rhs.rank == 2 and rhs_contract[0] == 1
        return lambda x, y: np.dot(x.T if flip_lhs else x, y.T if flip_rhs else y)
    if not lhs_batch:
        return lambda x, y: np.tensordot(x, y, axes=(lhs_contract, rhs_contract))
    lhs_order = (*lhs_batch, *_kept(lhs, lhs_contract, lhs_batch), *lhs_contract)
    rhs_order = (*rhs_batch, *rhs_contract, *_kept(rhs, rhs_contract, rhs_batch))
    batch = [lhs.shape[k] for k in lhs_batch]
    contracted = prod(lhs.shape[k] for k in lhs_contract)
    rows = prod(lhs.shape[k] for k in _kept(lhs, lhs_contract, lhs_batch))
    columns = prod(rhs.shape[k] for k in _kept(rhs, rhs_contract, rhs_batch))

    def batched(x: Any, y: Any) -> Any:
        x = np.reshape(np.transpose(x, lhs_order), (*batch, rows, contracted))
        y = np.reshape(np.transpose(y, rhs_order), (*batch, contracted, columns))
        return np.reshape(np.matmul(x, y), shape)

    return batched


def _outer_product(np: Any, attrs: DotGeneralAttrs, operands: Types, shape: tuple[int, ...]) -> Kernel:
    # With nothing to sum a product of matrices would be many times slower than this, which is a multiplication.
    (lhs, rhs), (_, (lhs_batch, rhs_batch)) = operands, attrs.dimension_numbers
    lhs_order, rhs_order = (*lhs_batch, *_kept(lhs, (), lhs_batch)), (*rhs_batch, *_kept(rhs, (), rhs_batch))
    lhs_shape = (*shape[: lhs.rank], *[1] * (len(shape) - lhs.rank))
    rhs_shape = (*shape[: len(lhs_batch)], *[1] * (lhs.rank - len(lhs_batch)), *shape[lhs.rank :])

    def product(x: Any, y: Any) -> Any:
        return np.multiply(np.reshape(np.transpose(x, lhs_order), lhs_shape), np.reshape(np.transpose(y, rhs_order), rhs_shape))

    return product


def attrs_of_tangent(node: JVP) -> dict[str, Any]:
    """The attrs of a product, of a tangent and the other operand."""
    attrs = dict(node.attrs)
    if node.attrs.preferred_element_type is not None:
        attrs["preferred_element_type"] = node.results[0].type.dtype  # of products of integers a float
    return attrs


def _adjoint(node: Transposition, active: int, other: Term, ct: Term) -> Term:
    contract, batch = node.attrs.dimension_numbers
    kept, other = [_kept(*side) for side in zip(node.types, contract, batch, strict=True)], as_dtype(other, ct.type.dtype)
    n, end = len(batch[0]), len(batch[0]) + len(kept[0])  # the axes of ct: batch, those of lhs, those of rhs
    of_other = tuple(range(end, ct.type.rank) if active == 0 else range(n, end))
    # The contraction leaves axes in the order batch, kept, contracting as the other operand has them, or contracting before kept;
    # `order` names, for each of them, the axis of the active operand that it is.
    contracted = tuple(axis for _, axis in sorted(zip(contract[1 - active], contract[active], strict=True)))
    numbers = tuple(range(n))
    if active == 0:
        contribution = dot_general(ct, conj(other), dimension_numbers=((of_other, kept[1]), (numbers, batch[1])))
        order = (*batch[0], *kept[0], *contracted)
    else:
        contribution = dot_general(conj(other), ct, dimension_numbers=((kept[0], of_other), (batch[0], numbers)))
        order = (*batch[1], *contracted, *kept[1])
    permutation = tuple(sorted(range(len(order)), key=order.__getitem__))
    if permutation != tuple(range(len(order))):
        contribution = transpose(contribution, permutation=permutation)
    return as_dtype(contribution, node.types[active].dtype)


def _batch(node: Batching) -> Sequence[Term]:
    (lhs, rhs), (contract, batch) = node.operands, node.attrs.dimension_numbers
    if all(node.batched):
        in_step = with_batch_axis(batch[0]), with_batch_axis(batch[1])
        return [_dot(node, lhs, rhs, (later(contract[0]), later(contract[1])), in_step)]
    # One side has a batch: as one more of its kept axes it makes the products longer, not more.
    k = node.batched.index(True)
    n_kept = [len(_kept(*side)) for side in zip(node.types, contract, batch, strict=True)]
    contract, batch = (tuple(later(axes) if side == k else axes for side, axes in enumerate(pair)) for pair in (contract, batch))
    if not batch[0] and k == 1 and not n_kept[1]:
        # With the operands exchanged the batch comes first by itself. (Products commute to the bit.)
        return [_dot(node, rhs, lhs, contract[::-1], batch[::-1])]
    product = _dot(node, lhs, rhs, contract, batch)
    place = len(batch[0]) + k * n_kept[0]
    others = [axis for axis in range(product.type.rank) if axis != place]
    return [transpose(product, permutation=(place, *others)) if place else product]


def _dot(node: Batching, lhs: Term, rhs: Term, contract: Pair, batch: Pair) -> Term:
    return dot_general(lhs, rhs, **(dict(node.attrs) | {"dimension_numbers": (contract, batch)}))


def _caption(case: Case, operands: Sequence[str]) -> Caption:
    (a, b), types = operands, arrays(case)
    (left, right), (left_batch, right_batch) = cast(DotGeneralAttrs, case.attrs).dimension_numbers
    summed = f"sums axis {listed(left)} with {listed(right)}" if left else "outer product"
    label = summed + (f", by axis {listed(left_batch)}" if left_batch else "")
    if not left and not left_batch:
        scalar = any(t is not None and t.rank == 0 for t in types)
        return Caption(f"{a} {'·' if scalar else '⊗'} {b}", "the product" if scalar else "the outer product", label=label)
    turned = _turned(types[0], left, left_batch, -1), _turned(types[1], right, right_batch, -2)
    if None in turned:
        return Caption(f"{a} · {b}", f"the product that {label}", label=label)
    what = "the inner product" if all(t is not None and t.rank == 1 for t in types) else "the matrix product"
    return Caption(f"{a}{turned[0]} @ {b}{turned[1]}", what + (" of each pair" if left_batch else ""), label=label)


def _turned(type_: TensorType | None, contracted: Sequence[int], batch: Sequence[int], due: int) -> str | None:
    """`ᵀ` if a matrix has to be transposed for a product in the usual order, '' if not; None if the product is another one.

    `due` is the axis that the usual order sums over, counted from the end: -1 on the left, -2 on the right.
    """
    if type_ is None or len(contracted) != 1 or list(batch) != list(range(len(batch))) or not 1 <= type_.rank - len(batch) <= 2:
        return None
    if type_.rank - len(batch) == 1:
        return "" if not batch else None  # of a stack of vectors, `@` would make a matrix
    return "" if contracted[0] == type_.rank + due else "ᵀ"


def _entries(node: Spreading, contract: Sequence[int], axis: int) -> list[Spread]:
    """How an axis of the result depends on the one that is summed over, where the other operand is matrices that are known."""
    other = 1 - node.k
    matrix = node.values[other] if node.values else None
    (summed, batch) = (pair[other] for pair in node.attrs.dimension_numbers)
    if matrix is None or len(summed) != 1 or matrix.ndim != len(batch) + 2:
        return []
    (kept,) = _kept(node.types[other], summed, batch)
    there = (matrix != 0).any(axis=tuple(batch))
    if there.all():
        return []
    rows, columns = (there if kept < summed[0] else there.T).nonzero()
    return [(axis, contract[0], list(zip(rows.tolist(), columns.tolist(), strict=True)))]


def _spreads(node: Spreading) -> Sequence[Spread]:
    """Batch axes and those that are not summed over stay; the others' are new axes, or that of a known matrix, by its entries."""
    contract, batch = (pair[node.k] for pair in node.attrs.dimension_numbers)
    kept = _kept(node.operand, contract, batch)
    first = len(batch) if node.k == 0 else node.result.rank - len(kept)
    return [
        *_entries(node, contract, len(batch) if node.k else node.result.rank - 1),
        *((axis, b, None) for axis, b in enumerate(batch)),
        *((first + i, axis, None) for i, axis in enumerate(kept)),
    ]


PRIMITIVES = (
    bilinear(
        "dot_general",
        _types,
        _kernel,
        _adjoint,
        attrs_of_tangent=attrs_of_tangent,
        batch=_batch,
        sparsity=_spreads,
        attrs=DotGeneralAttrs,
        dtypes=NUMERIC,
        examples=(
            Example(("T[2,3]", "T[3,4]"), {"dimension_numbers": [[[1], [0]], [[], []]]}),
            Example(("T[2,3,5]", "T[3,2,4]"), {"dimension_numbers": [[[1], [0]], [[0], [1]]]}),
            Example(("f32[3]", "f32[3]"), {"dimension_numbers": [[[0], [0]], [[], []]], "preferred_element_type": "f64"}),
        ),
        flops=products(lambda attrs: attrs.dimension_numbers[0][0]),
        formula="Σ lhs · rhs over the contracting axes",
        summary="product of arrays: result axes are batch, then lhs, then rhs",
        caption=_caption,
    ),
)
