"""Pictures as DOT text: what is drawn how, and what options change."""

from __future__ import annotations

import re
import subprocess
from collections import Counter

import pytest

from tests.cli.running import ROOT, F, document, graph, invoke, succeed
from tests.programs import needs
from tidu_cli import derivative, grad, jvp, load, vjp
from tidu_cli.errors import UnknownNameError
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.keys import parse_key
from tidu_cli.render.dot import COLOURS, to_dot
from tidu_cli.render.picture import Flow, Kind, n_items, picture
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose


def read(data):
    return parse_document(data, "test")[0]


@pytest.fixture
def reverse():
    with open(F, "rb") as file:
        return transpose(linearize(read(file.read()), [parse_key("x")]))


def line(text, name):
    """The line that draws an item."""
    (drawn,) = [each.strip() for each in text.split("\n") if each.strip().startswith(f"{name} [")]
    return drawn


def test_each_graph_says_what_it_is(reverse):
    titles = re.findall(r'^    label="(.*?)";', to_dot(reverse), flags=re.M)
    assert titles == ["f\\nprimal", "f@-1 (linear, pass 1, head)\\ntransposed: cotangents backward"]
    forward = transpose(reverse)
    assert "linear: tangents forward" in to_dot(forward)
    assert "materialized: values and derivatives in one" in to_dot(materialize(reverse))
    sine = read(document(graph([("sin", 0)], outputs=[("y", 1)])))
    assert "residual: kept for the linear graph" in to_dot(linearize(sine, [parse_key("x")]))


def test_inputs_outputs_nodes_and_accumulation_look_different(reverse):
    text = to_dot(reverse)
    assert "shape=ellipse" in line(text, "g1v0") and "peripheries=2" in line(text, "g1o0")
    assert "shape" not in line(text, "g1n0")
    assert [item.id for item in picture(reverse).items if item.accumulates] == ["g1n2", "g1n3"]
    assert 'label="+", shape=circle' in line(text, "g1n2")
    assert line(text, "g0n0") == 'g0n0 [label="add"];'


def test_tangents_and_cotangents_have_colours_of_their_own(reverse):
    assert {item.flow for item in picture(reverse).items if item.graph == 1} == {Flow.COTANGENT}
    assert COLOURS[Flow.COTANGENT] in line(to_dot(reverse), "g1n0")
    forward = transpose(reverse)
    assert {item.flow for item in picture(forward).items if item.graph == 1} == {Flow.TANGENT}
    one = picture(materialize(reverse))
    assert {item.flow for item in one.items if item.kind is Kind.NODE} == {Flow.PRIMAL, Flow.COTANGENT}


def test_references_to_other_graphs_are_dashed(reverse):
    dashed = re.findall(r"^  (\w+) -> (\w+) \[style=dashed", to_dot(reverse), flags=re.M)
    assert dashed == [("g0v0", "g1n0"), ("g0n0", "g1n1")]


def test_types_stand_on_the_edges(reverse):
    assert 'label="  f64[]"' not in to_dot(reverse)
    edges = [each for each in to_dot(reverse, types=True).split("\n") if " -> " in each]
    assert len(edges) == 14 and all('label="  f64[]"' in edge for edge in edges)


def test_long_constants_are_elided():
    big = {"type": "f64[100]", "data": [1.5] * 100}
    node = {"op": "constant", "inputs": [], "attrs": {"value": big}}
    text = to_dot(read(document({"name": "f", "inputs": [], "nodes": [node], "outputs": [{"key": "y", "value": 0}]})))
    assert '"constant\\n[1.5, 1.5, 1.5, ...]: f64[100]"' in text


def test_highlight_keeps_the_paths_through_a_key(reverse):
    def lit(*keys):
        shown = picture(reverse, highlight=[parse_key(key) for key in keys])
        return {item.id for item in shown.items} - shown.faded

    assert lit("y") == {"g0v0", "g0n0", "g0n1", "g0o0"}
    assert lit("y@-1") == {"g1v0", "g1n0", "g1n1", "g1n2", "g1n3", "g1o0"}
    assert lit("y", "y@-1") == lit("x") | {"g1v0"}
    with pytest.raises(UnknownNameError, match="input or output 'z'"):
        lit("z")


def test_a_highlighted_path_crosses_inputs_of_one_key():
    first, second = graph([("neg", 0)], outputs=[("y", 1)], name="a"), graph([("exp", 0)], outputs=[("z", 1)], name="b")
    shown = picture(read(document(first, second)), highlight=[parse_key("z")])
    assert shown.faded == {"g0n0", "g0o0"}


def test_collapse_draws_each_graph_but_the_head_as_one_node(reverse):
    text = to_dot(reverse, collapse=True)
    assert 'label="2 nodes\\n1 add, 1 mul"' in line(text, "g0n1")
    assert "g0n0" not in text and "g1n3" in text
    edges = re.findall(r"^  (\w+) -> (\w+)", text, flags=re.M)
    assert edges[:2] == [("g0v0", "g0n1"), ("g0n1", "g0o0")]
    assert {("g0v0", "g1n0"), ("g0n1", "g1n1")} <= set(edges)
    for collapse in (False, True):
        shown = picture(reverse, collapse=collapse)
        assert n_items(reverse, collapse=collapse) == (len(shown.items), len(shown.edges))


def test_large_graphs_are_refused_with_what_to_do():
    nodes = [("neg", k) for k in range(600)]
    data = succeed("linearize", "--wrt", "x", input=document(graph(nodes, outputs=[("y", 600)])))
    result = invoke("dot", "--format", "svg", "--expand", input=data)
    assert result.exit_code == 1
    assert "1204 inputs, nodes and outputs, more than 500; --collapse draws 6" in result.stderr
    assert "--limit 1204 draws all;" in result.stderr
    assert succeed("dot", input=data).startswith(b"digraph")
    assert invoke("dot", "--limit", "1203", input=data).exit_code == 1
    assert succeed("dot", "--limit", "1204", input=data).startswith(b"digraph")


def test_groups_have_a_limit():
    data = document(graph([("neg", k) for k in range(100_001)], outputs=[("y", 100_001)]))
    result = invoke("view", input=data)
    assert result.exit_code == 1
    assert "100,001 nodes are too many to be grouped, the most are 100,000; tidu dot -o FILE.svg groups more, and" in result.stderr


def test_only_what_helps_is_advised():
    def complaint(nodes, inputs, limit, *options):
        data = document(graph(nodes, inputs=[(f"x{k}", "f64[]") for k in range(inputs)], outputs=[("y", inputs + len(nodes) - 1)]))
        return invoke("dot", "--limit", str(limit), *options, input=data).stderr

    wide = [("add", 0, 1), *(("add", 30 + k - 1, k + 1) for k in range(1, 29))]
    for options in ([], ["--collapse"]):
        told = complaint(wide, 30, 20, *options)
        assert "31 are inputs and outputs, which are always drawn" in told and "--collapse" not in told
    branching = [("sin", 0), ("cos", 0), ("mul", 1, 2), *(("mul", k, k + 1) for k in range(2, 10))]
    assert "--collapse does not help" in complaint(branching, 1, 5)
    assert "it is collapsed already" in complaint(branching, 1, 5, "--collapse")
    several = [*branching, *(("neg", 11 + k) for k in range(10))]
    assert "--collapse --limit 13 draws 13; --limit 23 draws all" in complaint(several, 1, 5)


def test_operands_are_numbered_where_their_order_matters():
    text = to_dot(read(document(graph([("add", 0, 0), ("sub", 1, 0)], outputs=[("y", 2)]))))
    assert re.findall(r"-> (\w+) \[headlabel=(\d)\]", text) == [("g0n1", "0"), ("g0n1", "1")]


def test_labels_of_collapsed_graphs_are_whole():
    nodes = [("sin", 0), ("cos", 1), ("exp", 2), ("sqrt", 3), ("sqrt", 4), ("neg", 5)]
    deep = linearize(read(document(graph(nodes, outputs=[("y", 6)]))), [parse_key("x")])
    text = to_dot(deep, collapse=True)
    assert 'label="6 nodes\\n2 sqrt, 1 cos, 1 exp, 2 others"' in line(text, "g0n5")
    runs = read(document(graph([*[("neg", k) for k in range(3)], ("exp", 3), ("sin", 4), ("cos", 5)], outputs=[("y", 6)])))
    assert 'label="6 nodes\\nneg ×3, exp, ..., cos"' in line(to_dot(runs, collapse=True), "g0n5")


def test_ops_on_arrays_are_told_in_words():
    node = {"op": "reduce_sum", "inputs": [0], "attrs": {"axes": [1]}}
    data = {"name": "f", "inputs": [{"key": "x", "type": "f64[2,3]"}], "nodes": [node], "outputs": [{"key": "y", "value": 1}]}
    assert line(to_dot(read(document(data))), "g0n0") == 'g0n0 [label="reduce_sum\\nsummed over axis 1"];'


@needs("dot")
@pytest.mark.parametrize("name", ["<script>alert(1)</script>", '"];x[label="', "\\", "a&lt;b", "\x00\n", "日本", "{|}", "<b>"])
def test_names_are_no_markup_to_graphviz(name):
    text = to_dot(read(document(graph([("neg", 0)], inputs=[(name, "f64[]")], outputs=[(name + "!", 1)], name=name))))
    done = subprocess.run(["dot", "-Tsvg"], input=text.encode(), capture_output=True, check=True)
    assert done.stderr == b"" and b"<script" not in done.stdout
    assert len(re.findall(rb'class="node"', done.stdout)) == 3


# --- materialized derivatives

SAMPLES = [("rosenbrock", "x"), ("mlp", "W1"), ("logsumexp", "x")]


def flows_of(made):
    """Of the nodes of the head what they are, by op and by whether they are linear."""
    shown, head = picture(made), made.head
    told = Counter()
    for item in shown.items:
        if item.kind is Kind.NODE and item.graph == len(made.graphs) - 1:
            case = head.case(item.index)
            told[case.op, bool(case.mask and any(case.mask)), item.flow] += 1
    return told


@pytest.mark.parametrize(("name", "wrt"), SAMPLES)
def test_linear_nodes_of_a_gradient_are_cotangents(name, wrt):
    """A gradient has its seed as a constant, where a vector-Jacobian product has an input that is one."""
    f = load(ROOT / f"samples/{name}.json")
    seeded, closed = vjp(f, wrt), grad(f, wrt)
    assert flows_of(seeded) == flows_of(materialize(transpose(linearize(f, [parse_key(wrt)]))))
    linear = {flow for (_, is_linear, flow) in flows_of(closed) if is_linear}
    assert linear == {Flow.COTANGENT}
    assert {flow for (_, is_linear, flow) in flows_of(closed) if not is_linear} <= {Flow.PRIMAL}
    assert 'color="#7b3fa0"' in to_dot(closed).partition(" -> ")[0]


def test_tangents_of_a_closed_derivative_are_tangents():
    f = load(ROOT / "samples/cube.json")
    assert {flow for (_, is_linear, flow) in flows_of(derivative(f, "x")) if is_linear} == {Flow.TANGENT}


def test_a_later_pass_keeps_the_colours_of_an_earlier_one():
    """Cotangents whose seed is a constant are held fixed where the gradient is differentiated again."""
    f = load(ROOT / "samples/rosenbrock.json")
    again = jvp(grad(f, "x"), "x")
    shown = picture(again)
    by_kind = Counter(item.flow for item in shown.items if item.kind is Kind.NODE)
    assert all(by_kind[flow] for flow in Flow)
    for node, (case, arguments) in enumerate(again.head.nodes()):
        if case.mask and any(case.mask):
            moving = {shown.flows[0][a] for a, on in zip(arguments, case.mask, strict=True) if on}
            assert shown.flows[0][again.head.results(node)[0]] in moving | {Flow.COTANGENT}
