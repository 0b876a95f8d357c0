"""recompute: the same values to the bit, less memory at once, and copies that later commands leave alone."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.graphs.interpret import free_inputs, random_value
from tests.graphs.sketch import Sketch, Value, document, function, key, listing, op, structure
from tests.graphs.strategies import ANY, documents, seeds
from tests.peaks import peak
from tests.transforms.laws.test_laws import law, wrt_of
from tidu_cli.errors import TransformError, UnknownNameError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Binding, Document
from tidu_cli.graph.keys import Key
from tidu_cli.runtime.memory import estimate_memory, evaluation
from tidu_cli.runtime.plans.program import compile_graph
from tidu_cli.transforms.checkpoints import Cheap, Named, Policy, Sqrt
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.resolve import resolve
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.matrix import matrix
from tidu_cli.transforms.recompute import recompute
from tidu_cli.transforms.transpose import transpose

X = key("x")
KIB8 = 8000
"""The bytes of f64[1000]."""

sin, exp, mul = op("sin"), op("exp"), op("mul")
barrier = op("optimization_barrier")


class All:
    """The policy that drops whatever may be dropped, in one segment."""

    def drop(self, schedule, trace) -> None:
        for node in range(schedule.graph.n_nodes):
            schedule.dropped[node] = schedule.droppable(node)


policies = st.sampled_from([Sqrt(), Cheap(), Cheap(0.25), Cheap(1e6), All()])


def chain(n: int, names: tuple[str, ...] = ("sin",), type_: str = "f64[1000]") -> Document:
    def body(x: Value) -> Value:
        for k in range(n):
            x = op(names[k % len(names)])(x)
        return x

    return function("f", {"x": type_}, body)


def reverse(doc: Document, wrt: list[Key]) -> Document:
    return transpose(linearize(doc, wrt))


def inputs_of(doc: Document, seed: int) -> dict[Key, np.ndarray]:
    """Random inputs, those of one key alike in all documents: a copy may bring in the cotangents that it waits for."""
    rngs = {i.key: np.random.default_rng([seed, zlib.crc32(str(i.key).encode())]) for i in doc.head.inputs}
    return {i.key: np.asarray(random_value(i.type, rngs[i.key])) for i in doc.head.inputs}


def run(doc: Document, seed: int = 0) -> dict[Key, bytes]:
    """The bits of all outputs, at random inputs."""
    one = materialize(doc)
    program = compile_graph(one.head)
    arrays = program.run(inputs_of(one, seed))
    return {o.key: array.tobytes() for o, array in zip(program.outputs, arrays, strict=True)}


def measured_peak(doc: Document, seed: int = 0) -> int:
    program = compile_graph(doc.head)
    inputs = inputs_of(doc, seed)
    _ = program.kernels
    # Threads that other tests left behind, as a client of Dask's does, allocate now and then; they come on top.
    return min(peak(lambda: program.run(inputs)) for _ in range(3))


def barriers(doc: Document) -> int:
    return sum(doc.head.case(node).op == "optimization_barrier" for node in range(doc.head.n_nodes))


def derivatives(doc: Document, seed: int) -> Iterator[Document]:
    """Forward, reverse, forward over reverse and reverse over reverse, by some of the inputs."""
    wrt = wrt_of(doc, seed)
    forward = linearize(doc, wrt)
    yield forward
    yield transpose(forward)
    yield linearize(transpose(forward), wrt)
    yield reverse(transpose(forward), wrt)


@law
@given(documents(makers=ANY), policies, seeds)
def test_values_are_the_same_to_the_bit(doc: Document, policy: Policy, seed: int) -> None:
    for derivative in derivatives(doc, seed):
        one = materialize(derivative)
        less = recompute(derivative, policy)
        assert [(i.key, i.type) for i in less.head.inputs] == [(i.key, i.type) for i in one.head.inputs]
        assert [(o.key, o.type) for o in less.head.outputs] == [(o.key, o.type) for o in one.head.outputs]
        assert run(less, seed) == run(one, seed)


@law
@given(documents(makers=ANY), policies, seeds)
def test_copies_survive_every_reader(doc: Document, policy: Policy, seed: int) -> None:
    for derivative in derivatives(doc, seed):
        less = recompute(derivative, policy)
        assert structure(materialize(less)) == structure(less)
        assert structure(resolve([less])) == structure(less)
        for format_ in ("json", "msgpack"):
            read, _ = parse_document(format_document(less, format_), "it")
            assert structure(read) == structure(less)
        program = compile_graph(less.head)
        assert evaluation(less).peak == estimate_memory(program).peak or program.n_steps < less.head.n_nodes


@law
@given(documents(makers=ANY), policies, seeds)
def test_derivatives_of_the_result_are_those_of_the_graph(doc: Document, policy: Policy, seed: int) -> None:
    wrt = wrt_of(doc, seed)
    gradient = materialize(reverse(doc, wrt))
    less = recompute(gradient, policy)
    again = [k for k, t in free_inputs(less).items() if t.inexact and k in free_inputs(gradient)]
    if not again:
        return
    for derive in (linearize, reverse):
        expected, recomputed = run(derive(gradient, again), seed), run(derive(less, again), seed)
        for k, bits in expected.items():
            # Tangents that meet in a value and its copy are added in another order.
            a, b = (np.frombuffer(data, np.float64) for data in (bits, recomputed[k]))
            np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9 * (1 + np.max(np.abs(a), initial=0)))


def test_a_chain_peaks_at_the_square_root_of_its_length() -> None:
    peaks = {}
    for n in (100, 400, 1600):
        gradient = reverse(chain(n), [X])
        before, after = evaluation(materialize(gradient)), evaluation(recompute(gradient, Sqrt()))
        assert before.peak == (n + 3) * KIB8
        peaks[n] = after.peak / KIB8
        assert after.flops.known < before.flops.known * 4 / 3, "sin and cos once, and sin twice but for one segment"
    assert peaks[1600] < 100
    for n in (100, 400):
        assert peaks[4 * n] < 2.2 * peaks[n], "four times the length, twice the memory"


def test_forward_mode_does_not_hold_the_chain_either() -> None:
    tangents = linearize(chain(400), [X])
    assert evaluation(materialize(tangents)).peak == 403 * KIB8
    assert evaluation(recompute(tangents, Sqrt())).peak < 50 * KIB8


@pytest.mark.check
@pytest.mark.parametrize("policy", [Sqrt(), Cheap()], ids=str)
@pytest.mark.parametrize("derive", [linearize, reverse])
def test_what_is_measured_falls_as_the_estimate_does(policy: Policy, derive: Callable[..., Document]) -> None:
    doc = derive(chain(1000, ("sin", "exp", "neg", "tanh", "logistic")), [X])
    one, less = materialize(doc), recompute(doc, policy)
    assert run(one) == run(less)
    before, after = measured_peak(one), measured_peak(less)
    assert after < 0.6 * before
    for measured, doc in ((before, one), (after, less)):
        # The caller's inputs are in the estimate only; lists of slots are measured only.
        assert abs(evaluation(doc).peak - measured) < 2 * KIB8 + 0.02 * measured


def test_no_segment_holds_a_broadcast_input_for_another() -> None:
    def body(x: Value, b: Value) -> Value:
        bias = op("broadcast_in_dim")(b, shape=(1000,), broadcast_dimensions=())
        for _ in range(100):
            x = sin(x * bias)
        return x

    gradient = reverse(function("f", {"x": "f64[1000]", "b": "f64[]"}, body), [X, key("b")])
    less = recompute(gradient, Sqrt())
    copies = sum(less.head.case(node).op == "broadcast_in_dim" for node in range(less.head.n_nodes))
    assert 10 < copies < 30, "one for each segment"
    assert run(less) == run(gradient)


def test_cheap_adds_up_along_a_chain() -> None:
    gradient = reverse(chain(1000), [X])
    peaks = [evaluation(recompute(gradient, Cheap(limit))).peak / KIB8 for limit in (0, 0.25, 0.5, 1, 2, 4)]
    assert peaks[0] == 1003
    assert sorted(peaks, reverse=True) == peaks, "the more may be recomputed, the less is held"
    assert peaks[-1] < 100, "1000/32 held, and twice 32 while they are needed"


def test_cheap_holds_a_result_rather_than_an_operand_of_its_size() -> None:
    # Only exp(w x) is needed late; dropping it would hold the product instead, for more operations.
    def body(w: Value, x: Value) -> Value:
        product = op("dot_general")(w, x, dimension_numbers=(((1,), (0,)), ((), ())))
        return exp(product) + 1.0

    gradient = reverse(function("f", {"w": "f64[50,50]", "x": "f64[50]"}, body), [X])
    both = [key("y"), key("x@-1")]
    assert structure(recompute(gradient, Cheap(), outputs=both)) == structure(materialize(gradient, outputs=both))


def test_the_copy_is_made_before_its_reader_from_what_waits_for_it() -> None:
    # y = sin(exp x) is an output, so exp x is computed early and, for cos(exp x), once more.
    doc = function("f", {"x": "f64[2]"}, lambda x: {"y": sin(exp(x))})
    gradient = reverse(doc, [X])
    both = recompute(gradient, All(), outputs=[key("y"), key("x@-1")])
    assert listing(both.head) == [
        "exp(0)",
        "sin(2)",
        "optimization_barrier(0, 1)",
        "exp(4)",
        "cos(6)",
        "mul(7, 1) FT",
        "mul(6, 8) FT",
    ]
    # Nobody else needs it: it is moved, and nothing holds it apart.
    alone = recompute(gradient, All())
    assert listing(alone.head) == ["exp(0)", "cos(2)", "mul(3, 1) FT", "mul(2, 4) FT"]


def layers(n: int) -> Document:
    """Graphs f0, f1, ... of five nodes each; the input of each is bound to the output of the one before."""
    graphs, bindings, cases = [], [], None
    for k in range(n):
        sketch = Sketch({f"x{k}": "f64[1000]"}, cases=cases, number=k)
        cases, (value,) = sketch.builder.cases, sketch.inputs
        for _ in range(5):
            value = sin(value)
        graphs.append(sketch.build(f"f{k}", {f"y{k}": value}))
        if k:
            bindings.append(Binding(key(f"x{k}"), k - 1, 5))
    return document(*graphs, bindings=tuple(bindings))


def test_graphs_are_recomputed_by_name() -> None:
    gradient = reverse(layers(8), [key("x0")])
    one = materialize(gradient)
    each = recompute(gradient, Named(graphs=tuple(f"f{k}" for k in range(8))))
    assert evaluation(one).peak == 43 * KIB8
    assert evaluation(each).peak < 22 * KIB8, "seven outputs, and what is needed of one layer at a time"
    assert run(each) == run(one)
    some = recompute(gradient, Named(graphs=("f0", "f1")))
    assert evaluation(each).peak < evaluation(some).peak < evaluation(one).peak


def test_outputs_are_recomputed_by_key() -> None:
    gradient = reverse(layers(3), [key("x0")])
    less = recompute(gradient, Named(values=(key("y0"),)))
    # cos(y0) waits, and with it y0.
    assert barriers(less) == 1
    assert run(less) == run(gradient)


@pytest.mark.parametrize(
    ("policy", "error", "message"),
    [
        (Named(graphs=("g",)), UnknownNameError, "no graph is named 'g' (graphs: f, f@1.residual, f@-1)"),
        (Named(values=(key("z"),)), UnknownNameError, "no graph has an output 'z'"),
        (
            Named(values=(key("x@-1"),)),
            TransformError,
            "recompute='value=x@-1': graph 'f@-1': 'x@-1' is a tangent or cotangent, or depends on one",
        ),
    ],
)
def test_what_cannot_be_recomputed_is_refused(policy: Policy, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}"):
        recompute(reverse(chain(3), [X]), policy)


def test_where_nothing_is_late_the_graph_is_the_materialized_one() -> None:
    doc = chain(20)
    for policy in (Sqrt(), Cheap(), All()):
        assert structure(recompute(doc, policy)) == structure(materialize(doc))


def test_a_batch_goes_through_the_barrier() -> None:
    def body(x: Value) -> Value:
        a, b = x.sketch.apply_all("optimization_barrier", x, sin(x))
        return a * b

    plain, held = (linearize(function("f", {"x": "f64[3]"}, f), [X]) for f in (lambda x: x * sin(x), body))
    assert list(run(matrix(held)).values()) == list(run(matrix(plain)).values())
    assert run(transpose(held)) == run(transpose(plain))


@pytest.mark.check
@pytest.mark.parametrize("n", [8_000, pytest.param(33_000, marks=pytest.mark.campaign)])
def test_a_hundred_thousand_nodes(n: int) -> None:
    gradient = materialize(reverse(chain(n, type_="f64[2]"), [X]))
    for policy in (Sqrt(), Cheap()):
        less = recompute(gradient, policy)
        assert less.head.n_nodes < 2 * gradient.head.n_nodes
        assert evaluation(less).peak < evaluation(gradient).peak / 4
