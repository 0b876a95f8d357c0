"""What documents cost: depth, operations and memory, against plain recomputation and what the runtime estimates itself."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings

from tests.graphs.sketch import Sketch, Value, document, function, key, op
from tests.graphs.strategies import ANY, documents
from tests.tiers import examples
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.graph import Document, Place
from tidu_cli.graph.link import Application, Definitions
from tidu_cli.runtime.memory import Evaluation, Flops, estimate_memory, evaluation, flops
from tidu_cli.runtime.plans.program import compile_graph
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.compose import detach
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

LAWS = settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))
sin, cos = op("sin"), op("cos")


def derived(doc: Document) -> Document:
    bound = {b.key for b in doc.bindings}
    wrt = [i.key for g in doc.graphs for i in g.inputs if i.type.inexact and i.key not in bound]
    return transpose(linearize(doc, wrt)) if wrt else doc


@LAWS
@given(documents(makers=ANY))
def test_the_peak_is_what_the_runtime_estimates_of_the_materialized_document(doc: Document) -> None:
    one = materialize(doc)  # of one role, so that the runtime merges no nodes either
    program = compile_graph(one.head)
    costs = evaluation(one)
    assert costs.peak == estimate_memory(program).peak
    assert costs.nodes == program.n_steps == one.head.n_nodes
    assert costs.flops == flops(one.head)


@LAWS
@given(documents(makers=ANY))
def test_depths_are_those_of_a_plain_recomputation(doc: Document) -> None:
    doc = derived(doc)
    definitions, depth = Definitions(doc), dict[Place, int]()
    for g, graph in enumerate(doc.graphs):
        for value in range(graph.n_values):
            definition = definitions[g, value]
            below = definition.operands if isinstance(definition, Application) else ()
            depth[g, value] = isinstance(definition, Application) + max((depth[place] for place in below), default=0)
    due = [max((depth[g, v] for v in range(len(graph.inputs), graph.n_values)), default=0) for g, graph in enumerate(doc.graphs)]
    assert list(evaluation(doc).depths) == due


@LAWS
@given(documents(makers=ANY))
def test_linking_changes_no_depth_and_never_costs_more(doc: Document) -> None:
    doc = derived(doc)
    apart, linked = evaluation(doc), evaluation(materialize(doc))
    assert apart.depth == linked.depth
    assert apart.nodes >= linked.nodes and apart.flops.known >= linked.flops.known
    assert apart.flops.unknown == 0 and apart.peak is not None


def test_a_worked_example() -> None:
    """f(x) = (x + x) x of 1000 elements: its tangent needs the sum, and of f no more."""
    doc = linearize(function("f", {"x": "f64[1000]"}, lambda x: (x + x) * x), [key("x")])
    assert list(evaluation(doc).depths) == [2, 3]
    assert [flops(graph) for graph in doc.graphs] == [Flops(2000), Flops(4000)]
    # At the peak x, its tangent, x + x and t + t or the products are alive, three of them, or a result and its copy.
    assert evaluation(doc) == Evaluation(nodes=5, depth=3, flops=Flops(5000), peak=5 * 8000)


def test_dead_nodes_and_unread_results_cost_nothing_of_an_evaluation_or_their_bytes() -> None:
    s = Sketch({"x": "f64[4]"})
    (x,) = s.inputs
    dead = sin(cos(sin(x)))
    first, second = s.apply_all("split", x, sizes=[1, 3], axis=0)
    doc = document(s.build("f", {"y": second}))
    assert dead.type == x.type and first.type.size == 1
    assert list(evaluation(doc).depths) == [3]
    # x and both halves, of which one is let go of; then the other and its copy.
    assert evaluation(doc) == Evaluation(nodes=1, depth=1, flops=Flops(0), peak=32 + 24 + 24)


def test_the_longest_path_counts_whichever_is_met_first() -> None:
    for body in (lambda x: x * sin(cos(sin(x))), lambda x: sin(cos(sin(x))) * x):
        assert evaluation(function("f", {"x": "f64[]"}, body)).depth == 4
    shared = function("f", {"x": "f64[]"}, lambda x: (lambda u: u * sin(cos(u)) + sin(u))(sin(x)))
    assert evaluation(shared).depth == 5


def test_a_result_that_nothing_reads_is_alive_where_it_is_made() -> None:
    s = Sketch({"x": "f64[4]"})
    _, small = s.apply_all("split", s.inputs[0], sizes=[3, 1], axis=0)
    doc = document(s.build("f", {"y": small}))
    assert evaluation(doc).peak == 32 + 24 + 8


def test_an_operand_read_twice_counts_once() -> None:
    doc = function("f", {"x": "f64[10]"}, lambda x: sin(x) * sin(x))
    x, y = 80, 80
    assert evaluation(materialize(doc)).peak == x + 2 * y
    assert evaluation(doc).peak == x + 3 * y, "two sines, which materialize makes one"


def test_what_a_detached_reference_hides_is_unknown() -> None:
    doc = linearize(function("f", {"x": "f64[3]"}, square), [key("x")])
    cut = detach(doc, 1)
    assert evaluation(cut) == Evaluation(nodes=3, depth=2, flops=Flops(9), peak=24 + 24 + 3 * 24)
    data = {"tidu": 1, "graphs": [{"name": "f", "inputs": [{"key": "x", "type": "f64[]"}], "outputs": [{"key": "y", "value": 2}]}]}
    data["graphs"][0]["nodes"] = [
        {"op": "reduce_sum", "inputs": ["sha256:" + "0" * 64], "attrs": {"axes": [0]}, "types": ["f64[]"]},
        {"op": "mul", "inputs": [0, 1]},
    ]
    hidden, _ = parse_document(json.dumps(data).encode(), "hidden")
    assert flops(hidden.head) == Flops(1, unknown=1)
    assert evaluation(hidden) == Evaluation(nodes=2, depth=2, flops=Flops(1, unknown=1), peak=None)


def square(x: Value) -> Value:
    return x * x
