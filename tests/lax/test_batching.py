"""Batch rules: many applications at once give what each of them gives by itself, whichever operands they share."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

from tests.graphs.interpret import tree
from tests.graphs.templates import apply, batch, make_case, type_of
from tests.lax.sampling.samples import by_op
from tests.tiers import few
from tidu_cli.checking.numeric.trials import example_cases, of_operand, with_diagonal
from tidu_cli.errors import MissingRuleError
from tidu_cli.graph.graph import CaseTable
from tidu_cli.graph.types import COMPLEXES, RecordType, TensorType, leaves, storage_dtype
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules import families
from tidu_cli.rules.recording.templates import batch_template
from tidu_cli.rules.vocabulary import PrimitiveSet

WITH_OPERANDS = [p.name for p in BUILTIN if p.domain.arity != 0]

IN_ANOTHER_ORDER = {
    "dot_general", "conv_general_dilated", "fft", "reduce_sum", "reduce_prod", "reduce_window_sum", "select_and_scatter_add",
    "cumsum", "cumprod", "cumlogsumexp", "triangular_solve",
}  # fmt: skip
"""Primitives that combine many elements with rounding: in which order, NumPy and BLAS choose by the shape."""


def is_rounded_by_shape(case):
    """Whether NumPy's last digits depend on the shape: also of complex products, which it rounds otherwise in long arrays."""
    complex_function = BUILTIN[case.op].domain.one_type and any(t.complex for _, t in leaves(case.operands[0]))
    loops = BUILTIN[case.op].domain.attrs.graphs
    return (case.op in IN_ANOTHER_ORDER or complex_function or loops) and case.results[0].inexact


EPSILON = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52, "c64": 2.0**-23, "c128": 2.0**-52}


def subsets(n):
    """Every choice of at least one of n operands; of many, single ones, all but one, and all."""
    if n <= 4:
        return [mask for mask in itertools.product((False, True), repeat=n) if any(mask)]
    return [tuple((k == j) == single for k in range(n)) for j in range(n) for single in (True, False)] + [(True,) * n]


def check(case, items, size):
    """The law: `items` has for each operand as many arrays as the batch has items."""
    once = cache(lambda *at: apply(case, [xs[i] for xs, i in zip(items, at, strict=True)]))
    for batched in subsets(len(items)):
        shared = [None if b else xs[0] for xs, b in zip(items, batched, strict=True)]
        stacks = [
            stacked(xs[:size]) if size else tree(lambda x: np.zeros((0, *x.shape), x.dtype), xs[0]) if b else x
            for xs, x, b in zip(items, shared, batched, strict=True)
        ]
        operands = [s if b else x for s, x, b in zip(stacks, shared, batched, strict=True)]
        results = batch(case, operands, batched, size)
        each = [once(*(i if b else 0 for b in batched)) for i in range(size)]
        for k, (result, type_) in enumerate(zip(results, case.results, strict=True)):
            check_alike(case, result, together([one[k] for one in each], type_), batched)


def together(values, type_):
    """The values of one type as a batch, which may be empty."""
    if isinstance(type_, RecordType):
        return tuple(together([value[k] for value in values], t) for k, (_, t) in enumerate(type_.fields))
    return np.reshape([np.asarray(x) for x in values], (len(values), *type_.shape)).astype(numpy_dtype(np, type_.dtype))


def stacked(values):
    return tree(lambda *xs: np.stack(xs), *values)


def check_alike(case, actual, expected, batched):
    if isinstance(expected, tuple):
        for one, other in zip(actual, expected, strict=True):
            check_alike(case, one, other, batched)
        return
    actual = np.asarray(actual)
    assert type_of(actual) == type_of(expected), (case, batched)
    if is_rounded_by_shape(case):
        wide = np.complex128 if actual.dtype.kind == "c" else np.float64
        actual, expected = actual.astype(wide), expected.astype(wide)
        few = 8 * EPSILON[storage_dtype(case.results[0].dtype)]
        scale = np.abs(expected[np.isfinite(expected)]).max(initial=0)
        np.testing.assert_allclose(actual, expected, few, few * scale, err_msg=f"{case} {batched}")
    else:
        same = actual.tobytes() == expected.tobytes()
        assert same, (case, batched, actual, expected)


def drawn(rng, type_, interval):
    if isinstance(type_, RecordType):
        return tuple(drawn(rng, t, interval) for _, t in type_.fields)
    low, high = interval
    dtype = numpy_dtype(np, type_.dtype)
    if type_.dtype == "bool":
        return np.asarray(rng.integers(0, 2, type_.shape), bool)
    if dtype.kind in "iu":
        # Indices and selectors among them: some are out of range.
        low = int(low) - 2 if dtype.kind == "i" else max(int(low), 0)
        return np.asarray(rng.integers(low, int(high) + 3, type_.shape), dtype)
    x = rng.uniform(low, high, type_.shape)
    return np.asarray(x + 1j * rng.uniform(low, high, type_.shape) if type_.dtype in COMPLEXES else x).astype(dtype)


def batches(case, example, size=3):
    """For each operand `size` arrays."""
    rng = np.random.default_rng([size, len(case.op)])
    return [
        [with_diagonal(drawn(rng, t, of_operand(example.within, k)), of_operand(example.diagonals, k)) for _ in range(max(size, 1))]
        for k, t in enumerate(case.operands)
    ]


@pytest.mark.parametrize("name", WITH_OPERANDS)
def test_a_batch_of_every_example(name):
    for size, n in ((3, 3), (1, 2), (0, 2)):
        for example, case in few(example_cases(BUILTIN, BUILTIN[name]), n):
            check(case, batches(case, example, size), size)


@pytest.mark.parametrize("name", WITH_OPERANDS)
def test_a_batch_of_every_sample(name):
    """All ranks, empty arrays, and the attrs that examples leave out. Items differ in where they begin."""
    own = by_op().get(name, [])
    empty = [sample for sample in own if any(0 in np.shape(x) for x in sample.operands)]
    for sample in {id(one): one for one in (*few(own, 5), *few(empty, 1))}.values():
        items = [[np.roll(x.ravel(), i).reshape(x.shape) for i in range(2)] for x in sample.operands]
        check(sample.case, items, 2)


def ops(case, batched, size=3):
    """The ops that a batch rule emits for one case."""
    cases = CaseTable()
    template = batch_template(BUILTIN, cases, cases.intern(case), batched, size)
    return [cases[node.code].op for node in template.nodes]


@pytest.mark.parametrize("name", WITH_OPERANDS)
def test_a_batch_of_batches(name):
    """What a rule emits is batched again: two levels are the batches of each item of the outer one."""
    example, case = next(iter(example_cases(BUILTIN, BUILTIN[name])))
    outer, inner = 2, 3
    for batched in subsets(len(case.operands)):
        rows = [batches(case, example, inner + k) for k in range(outer)]
        operands = [[stacked(row[k][:inner]) if b else row[k][0] for k, b in enumerate(batched)] for row in rows]
        stacks = [stacked(xs) for xs in zip(*operands, strict=True)]
        cases = CaseTable()
        template = batch_template(BUILTIN, cases, cases.intern(case), batched, inner)
        # Evaluated node by node, each by its own batch rule where it reads a batch.
        slots, deep = list(stacks), [True] * len(stacks)
        for node in (*template.closed, *template.nodes):
            mask = tuple(deep[k] for k in node.reads)
            reads = [slots[k] for k in node.reads]
            slots += batch(cases[node.code], reads, mask, outer) if any(mask) else apply(cases[node.code], reads)
            deep += [any(mask)] * node.n_results
        each = [batch(case, row, batched, inner) for row in operands]
        for k, slot in enumerate(template.results):
            check_alike(case, slots[slot], stacked([one[k] for one in each]), batched)


STARTS = np.array([-(2**31), -1, 0, 1, 2, 7, 2**31 - 1], np.int32)


def test_batched_starts_out_of_range_are_clamped():
    x = np.arange(15.0).reshape(3, 5)
    starts = [list(STARTS), list(STARTS[::-1])]
    n = len(STARTS)
    sliced = make_case("dynamic_slice", {"slice_sizes": (2, 3)}, [type_of(x), *[TensorType("i32")] * 2])
    check(sliced, [[x + 100 * i for i in range(n)], *starts], n)
    update = -np.ones((2, 3))
    updated = make_case("dynamic_update_slice", {}, [type_of(x), type_of(update), *[TensorType("i32")] * 2])
    check(updated, [[x + 100 * i for i in range(n)], [update * i for i in range(n)], *starts], n)


def test_batched_selectors_out_of_range_take_the_ends():
    xs = [[np.full(2, 10.0 * k + i) for i in range(len(STARTS))] for k in range(3)]
    for which in (TensorType("i32"), TensorType("i32", (2,))):
        case = make_case("select_n", {}, [which, *[TensorType("f64", (2,))] * 3])
        check(case, [[np.full(which.shape, s) for s in STARTS], *xs], len(STARTS))


@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
@pytest.mark.parametrize("name", ["gather", "scatter", "scatter-add", "scatter-max"])
def test_batched_indices_out_of_range_follow_the_mode(name, mode):
    x = np.arange(12.0).reshape(4, 3)
    xs = [x + 100 * i for i in range(len(STARTS))]
    items = [xs, [np.array([[s], [1]], np.int32) for s in STARTS]]
    if name == "gather":
        numbers = {"offset_dims": [1], "collapsed_slice_dims": [0], "start_index_map": [0]}
        attrs = {"dimension_numbers": numbers, "slice_sizes": [1, 3], "mode": mode}
    else:
        numbers = {"update_window_dims": [1], "inserted_window_dims": [0], "scatter_dims_to_operand_dims": [0]}
        attrs = {"dimension_numbers": numbers, "mode": mode}
        items.append([np.array([[1.0, 2, 3], [40, 50, 60]]) * (i + 1) for i in range(len(STARTS))])
    check(make_case(name, attrs, [type_of(values[0]) for values in items]), items, len(STARTS))


def product(lhs, rhs, contract, batch=((), ())):
    return make_case("dot_general", {"dimension_numbers": (contract, batch)}, [TensorType("f64", lhs), TensorType("f64", rhs)])


def test_products_with_one_batch_are_one_product():
    """A batch of vectors through a matrix is a product of matrices, whichever side the matrix is on: no transposition even."""
    cases = CaseTable()
    for case, batched in (
        (product((4, 5), (5,), ((1,), (0,))), (False, True)),
        (product((5,), (5, 4), ((0,), (0,))), (True, False)),
        (product((5, 4), (5,), ((0,), (0,))), (True, False)),
    ):
        template = batch_template(BUILTIN, cases, cases.intern(case), batched, 3)
        (node,) = template.nodes
        assert cases[node.code].attrs.dimension_numbers[1] == ((), ())
    matrices = product((4, 5), (5, 6), ((1,), (0,)))
    assert ops(matrices, (False, True)) == ["dot_general", "transpose"]
    assert ops(matrices, (True, False)) == ["dot_general"]
    assert ops(matrices, (True, True)) == ["dot_general"]


def test_shared_scalars_are_left_alone():
    scalar, array = TensorType("f64"), TensorType("f64", (2,))
    assert ops(make_case("clamp", {}, [scalar, array, scalar]), (False, True, False)) == ["clamp"]
    assert ops(make_case("select_n", {}, [TensorType("bool"), array, array]), (False, True, True)) == ["select_n"]
    assert ops(make_case("pad", {"padding_config": [(1, 1, 0)]}, [array, scalar]), (True, False)) == ["pad"]


def changed(name, rule):
    return PrimitiveSet.of([families.changed(p, batch=rule) if p.name == name else p for p in BUILTIN])


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (None, "missing batch rule for neg"),
        (lambda node: [], "the batch rule of neg gives nothing where f64[3,2] is due"),
        (lambda node: [-node.operands[0]] * 2, "the batch rule of neg gives f64[3,2], f64[3,2] where f64[3,2] is due"),
    ],
)
def test_missing_and_wrong_rules_are_told(rule, message):
    cases = CaseTable()
    code = cases.intern(make_case("neg", {}, [TensorType("f64", (2,))]))
    with pytest.raises(MissingRuleError) as caught:
        batch_template(changed("neg", rule), cases, code, (True,), 3)
    assert str(caught.value) == message
