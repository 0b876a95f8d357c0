"""What stands for a node lies in memory as that did, where a reader adds up in the order of memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.control_flow.laws import gradient, hold, longer
from tests.graphs.interpret import evaluate, every_value, random_inputs
from tests.graphs.sketch import Sketch, Value, document
from tests.graphs.strategies import ANY, documents, seeds
from tests.identities.values import same
from tidu_cli.graph.graph import Document
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.identities.replacement import ROW_MAJOR, layout
from tidu_cli.runtime.evaluate import evaluate as run
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.rewriting import simplify

VIEWS: dict[str, Callable[[Sketch, Value], Value]] = {
    "transposed": lambda s, x: s.apply("transpose", x, permutation=[1, 0]),
    "repeated": lambda s, x: s.apply("broadcast_in_dim", x, shape=(3, *x.type.shape), broadcast_dimensions=[1, 2]),
    "every other": lambda s, x: s.apply("slice", x, start_indices=[0, 0], limit_indices=x.type.shape, strides=[1, 2]),
    "reversed": lambda s, x: s.apply("rev", x, dimensions=[0]),
    "real": lambda s, x: s.apply("real", s.apply("complex", x, x)),
    "itself": lambda s, x: s.apply("tanh", x),
}
READERS: dict[str, Callable[[Sketch, Value], Value]] = {
    "sum": lambda s, x: s.apply("reduce_sum", x, axes=list(range(x.type.rank))),
    "sine of it, summed": lambda s, x: s.apply("reduce_sum", s.apply("sin", x), axes=list(range(x.type.rank))),
    "flat, summed": lambda s, x: s.apply("reduce_sum", s.apply("reshape", x, new_sizes=(x.type.size,)), axes=[0]),
    "product": lambda s, x: s.apply("dot_general", x, x, dimension_numbers=[[[x.type.rank - 1], [x.type.rank - 1]], [[], []]]),
    "output": lambda s, x: x,
}


def _converted(s: Sketch, x: Value, *dtypes: str) -> Value:
    for dtype in dtypes:
        x = s.apply("convert_element_type", x, new_dtype=dtype)
    return x


def _reshaped(s: Sketch, x: Value, *shapes: tuple[int, ...]) -> Value:
    for shape in shapes:
        x = s.apply("reshape", x, new_sizes=shape)
    return x


NOTHING: dict[str, Callable[[Sketch, Value], Value]] = {
    "1 x": lambda s, x: x * 1,
    "x - 0": lambda s, x: x - 0,
    "reshaped there and back": lambda s, x: _reshaped(s, x, (x.type.size,), x.type.shape),
    "converted there and back": lambda s, x: _converted(s, x, "c128", "f64"),
    "padded by nothing": lambda s, x: s.apply("pad", x, s.full(1, TensorType("f64")), padding_config=[[0, 0, 0]] * x.type.rank),
    "negative, scaled": lambda s, x: -x * 0.3,
}


def _document(view: str, nothing: str, reader: str) -> Document:
    s = Sketch({"x": "f64[41,57]"})
    return materialize(document(s.build("f", {"y": READERS[reader](s, NOTHING[nothing](s, VIEWS[view](s, s.inputs[0])))})))


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("reader", READERS)
def test_sums_round_as_before(view: str, reader: str) -> None:
    for nothing in NOTHING:
        before = _document(view, nothing, reader)
        after = simplify(before)
        for seed in range(3):
            at = {before.head.inputs[0].key: np.random.default_rng(seed).normal(size=(41, 57)) * 1e3}
            due = evaluate(before, at)
            assert all(same(x, due[k]) for k, x in evaluate(after, at).items()), (view, nothing, reader)
            assert all(same(x, due[k]) for k, x in run(after.head, at).items()), (view, nothing, reader)


@pytest.mark.parametrize("nothing", NOTHING)
def test_where_nobody_sums_up_or_nothing_is_unusual_all_is_simplified(nothing: str) -> None:
    for view, reader in (*((view, "output") for view in VIEWS), *(("itself", reader) for reader in READERS)):
        before = _document(view, nothing, reader)
        assert simplify(before).head.n_nodes < before.head.n_nodes, (view, reader)


@longer
def test_layouts_are_those_of_numpy(times: int) -> None:
    def law(doc: Document, seed: int) -> None:
        graph = materialize(gradient(doc)).head
        single = Document((graph,), graph.cases)
        at = {k: np.array(x, order="C") for k, x in random_inputs(single, seed).items()}
        with np.errstate(all="ignore"):
            (values,) = every_value(single, at)
        layouts = [ROW_MAJOR] * len(graph.inputs)
        for case, args in graph.nodes():
            layouts += [layout(case, [layouts[a] for a in args])] * len(case.results)
        for claimed, x in zip(layouts, values, strict=True):
            x = np.asarray(x)
            if not x.size or claimed.order not in ("C", ""):
                continue
            strides = [step for step, n in zip(x.strides, x.shape, strict=True) if n > 1]
            assert x.flags.c_contiguous or not claimed.dense
            assert strides == sorted(strides, reverse=True) or 0 in strides
            assert claimed.order == "C" or not any(strides)

    hold(100 * times, law, documents(makers=ANY, shapes=((), (3,), (2, 3)), max_nodes=12), seeds)
