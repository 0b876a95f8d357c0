"""Zero stays symbolic, and what no output needs is not computed: no node is emitted for it, and none is run."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tests.graphs.interpret import random_inputs
from tests.graphs.sketch import Value, function, key, listing, names, op, ports
from tests.graphs.strategies import ANY, documents, seeds
from tests.tiers import examples
from tests.transforms.large.test_sparse import reading
from tests.transforms.laws.test_laws import wrt_of
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules import families
from tidu_cli.rules.contract import JVP, Kernel, Transposition
from tidu_cli.rules.families import changed
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.plans.program import compile_graph
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

X, Y = key("x"), key("y")
sin, mul, add, slice_, reduce_sum = map(op, ("sin", "mul", "add", "slice", "reduce_sum"))
law = settings(max_examples=examples(80, check=40), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def dead_nodes(doc: Document, first: int) -> list[str]:
    """The nodes of the graphs from number `first` on that the head's outputs do not depend on."""
    last = len(doc.graphs) - 1
    live = {value_of(doc.head, last, o.value) for o in doc.head.outputs if o.value is not None}
    dead = []
    for g in range(last, first - 1, -1):
        graph = doc.graphs[g]
        for n in range(graph.n_nodes - 1, -1, -1):
            results = {(g, graph.firsts[n] + k) for k in range(len(graph.case(n).results))}
            if not live & results:
                dead.append(graph.describe(n))
                continue
            live |= {value_of(graph, g, a) for a in graph.operands(n)}
    return dead


def value_of(graph: Graph, number: int, argument: int) -> tuple[int, int]:
    """The graph number and local id that an argument of graph `number` stands for."""
    external = graph.external
    return (number, argument) if argument >= 0 else (external.graph[-1 - argument], external.value[-1 - argument])


@law
@given(documents(makers=ANY), seeds)
def test_every_node_that_a_transform_makes_serves_some_output(doc: Document, seed: int) -> None:
    n = len(doc.graphs)
    forward = linearize(doc, wrt_of(doc, seed))
    assert dead_nodes(forward, n) == []
    back = transpose(forward)
    # The residual graph of linearize stays as it is, whatever of it the transpose needs.
    assert dead_nodes(back, len(forward.graphs) - 1) == []
    second = linearize(back, wrt_of(doc, seed))
    assert dead_nodes(second, len(back.graphs)) == []
    assert dead_nodes(transpose(second), len(second.graphs) - 1) == []


@law
@given(reading())
def test_so_does_every_node_of_sparse_cotangents(doc: Document) -> None:
    forward = linearize(doc, [X])
    back = transpose(forward)
    assert dead_nodes(back, len(forward.graphs) - 1) == []
    second = linearize(back, [X])
    assert dead_nodes(second, len(back.graphs)) == []
    assert dead_nodes(transpose(second), len(second.graphs) - 1) == []


def test_the_tangent_of_a_result_that_no_output_needs_is_not_computed() -> None:
    """sort moves keys and values; who needs the keys alone gets one gather, of the keys' tangent."""

    def first(x: Value, y: Value) -> Value:
        return x.sketch.apply_all("sort", x, sin(y), dimension=0, is_stable=True, num_keys=1)[0]

    forward = linearize(function("f", {"x": "f64[3]", "y": "f64[3]"}, first), [X, Y])
    assert [forward.head.case(n).op for n in range(forward.head.n_nodes)] == ["gather"]
    back = transpose(forward)
    assert [o.value is None for o in back.head.outputs] == [False, True]


def counted(primitives: PrimitiveSet, calls: list[str]) -> PrimitiveSet:
    """The set with kernels that note when they are called."""

    def noting(name: str, make: object) -> object:
        def kernel(*arguments: object) -> Kernel:
            run = make(*arguments)

            def call(*operands: object) -> object:
                calls.append(name)
                return run(*operands)

            return call

        return kernel

    noted = {
        p.name: changed(
            p, kernel=noting(p.name, p.evaluation.kernel), reusing=p.evaluation.reusing and noting(p.name, p.evaluation.reusing)
        )
        for p in primitives
    }
    return dataclasses.replace(primitives, primitives=noted)


@law
@given(documents(makers=ANY), seeds)
def test_evaluation_runs_no_node_that_its_outputs_do_not_need(doc: Document, seed: int) -> None:
    back = materialize(transpose(linearize(doc, wrt_of(doc, seed))))
    at = random_inputs(back, seed)
    for k in range(len(back.head.outputs)):
        calls: list[str] = []
        compile_graph(back.head, counted(BUILTIN, calls), [k]).run(at)
        alone = materialize(
            dataclasses.replace(back, graphs=(dataclasses.replace(back.head, outputs=back.head.outputs[k : k + 1]),))
        )
        assert len(calls) <= alone.head.n_nodes
        assert set(calls) <= {alone.head.case(n).op for n in range(alone.head.n_nodes)}


def test_zeros_are_null_through_every_transform_and_file_and_take_no_node() -> None:
    def body(x: Value, y: Value) -> dict[str, Value]:
        return {"u": mul(x, x), "v": x.sketch.apply("sign", y), "w": add(y, y)}

    doc = linearize(function("f", {"x": "f64[2]", "y": "f64[2]"}, body), [X])
    for _ in range(2):
        assert ports(doc.head)[1] == {"u@1": 3, "v@1": None, "w@1": None} and doc.head.n_nodes == 3
        doc = parse_document(format_document(doc, "json"), "f")[0]
    back = transpose(doc)
    assert ports(back.head) == (["u@-1", "v@-1", "w@-1"], {"x@-1": 5})
    second = linearize(linearize(back, [X]), [X])
    assert ports(second.head)[1] == {"x@-1@2@3": None} and second.head.n_nodes == 0
    calls: list[str] = []
    program = compile_graph(materialize(second).head, counted(BUILTIN, calls))
    (zero,) = program.run({})
    assert calls == [] and zero.tolist() == [0, 0]


def ignoring(rule: str) -> PrimitiveSet:
    """The built-in set, where add makes no use of its second operand's tangent, or sub's transpose gives it no cotangent."""

    def half_of_add(node: JVP) -> object:
        return [node.tangents[0]]

    def half_of_add_transposed(node: Transposition) -> object:
        return [node.cotangents[0] if node.active[0] else None, None]

    change = {"jvp": half_of_add} if rule == "jvp" else {"transpose": half_of_add_transposed}
    return PrimitiveSet(dict(BUILTIN.primitives) | {"add": families.changed(BUILTIN["add"], **change)})


@pytest.mark.parametrize("rule", ["jvp", "transpose"])
def test_what_leads_only_to_a_tangent_that_a_rule_ignores_is_dropped(rule: str) -> None:
    primitives = ignoring(rule)
    f = function("f", {"x": "f64[]"}, lambda x: add(mul(x, x), sin(sin(x))), primitives=primitives)
    forward = linearize(f, [X], primitives=primitives)
    assert dead_nodes(forward, 1) == []
    assert names(forward) == (["f", "f@1"] if rule == "jvp" else ["f", "f@1.residual", "f@1"])
    back = transpose(forward, primitives=primitives)
    assert dead_nodes(back, len(forward.graphs) - 1) == []


def test_a_cotangent_that_a_rule_ignores_is_not_computed() -> None:
    def nothing(node: Transposition) -> object:
        return [None]

    primitives = PrimitiveSet(dict(BUILTIN.primitives) | {"neg": families.changed(BUILTIN["neg"], transpose=nothing)})
    f = function("f", {"x": "f64[]"}, lambda x: add(sin(x.sketch.apply("neg", x)), x), primitives=primitives)
    back = transpose(linearize(f, [X], primitives=primitives), primitives=primitives)
    assert listing(back.head) == [] and ports(back.head) == (["y@-1"], {"x@-1": 0})


def test_the_gradient_by_one_input_computes_nothing_for_another() -> None:
    def body(x: Value, y: Value) -> Value:
        for _ in range(20):
            y = sin(y)
        return mul(sin(x), y)

    doc = materialize(transpose(linearize(function("f", {"x": "f64[]", "y": "f64[]"}, body), [X])))
    calls: list[str] = []
    (cotangent,) = compile_graph(doc.head, counted(BUILTIN, calls)).run(
        {X: np.array(0.3), Y: np.array(0.2), key("y@-1"): np.array(1.0)}
    )
    assert sorted(set(calls)) == ["cos", "mul", "sin"] and calls.count("sin") == 20 and calls.count("cos") == 1
    assert np.isfinite(cotangent)
