"""Groups of large graphs: that they are stretches of nodes, few on each level, without cycles; their names, and what repeats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.running import document, graph, succeed
from tests.render.large import attention_gradient, kinetics_gradient
from tests.tiers import examples
from tidu_cli import fori_loop, scan, to_dot, trace
from tidu_cli.errors import UnknownNameError
from tidu_cli.formats.read import parse_document
from tidu_cli.render.groups import MOST, Group, Repeat, groups_of, repeat
from tidu_cli.render.picture import picture
from tidu_cli.render.scene import forest, named
from tidu_cli.render.scene_dot import group_label, to_boxes


def grouped(made):
    return forest(picture(made, inside=False))


def outline(parts, depth):
    """The names of groups, as a tree."""
    return {p.name: outline(p.parts, depth - 1) if depth else ... for p in parts if isinstance(p, Group)}


@st.composite
def random_graphs(draw):
    n = draw(st.integers(1, 120))
    nodes = []
    for k in range(n):
        op = draw(st.sampled_from(["sin", "neg", "add", "mul"]))
        nodes.append((op, *(draw(st.integers(max(0, k - 9), k)) for _ in range(1 + (op in ("add", "mul"))))))
    made = graph(nodes, outputs=[("y", n)])
    if draw(st.booleans()):
        for k, node in enumerate(made["nodes"] if isinstance(made["nodes"][0], dict) else []):
            node["meta"] = {"name": f"layer{k // 7}/{draw(st.sampled_from('ab'))}"}
    return parse_document(document(made), "test")[0]


@settings(max_examples=examples(2000, check=100))
@given(random_graphs())
def test_groups_are_stretches_of_nodes_and_few_on_each_level(made):
    trees = grouped(made)
    for group in groups_of(trees.graphs):
        assert len(group.parts) <= MOST + 2 * (group in trees.graphs)  # with the input and the output
        items = [item for part in group.parts for item in (part.items if isinstance(part, Group) else [part])]
        assert items == list(group.items)
        assert group in trees.graphs or [item.index for item in items] == list(range(items[0].index, items[-1].index + 1))
    assert len(trees.groups) == len(list(groups_of(trees.graphs)))  # their ids are all different


@settings(max_examples=examples(2000, check=60))
@given(random_graphs())
def test_boxes_have_no_cycles(made):
    trees = grouped(made)
    for scene in trees.insides().values():
        assert all(
            link.source < link.target
            for link in scene.links.values()
            if scene.boxes[link.source].part and scene.boxes[link.target].part
        )


@settings(max_examples=examples(2000, check=45))
@given(random_graphs())
def test_every_edge_is_drawn_wherever_its_ends_are_apart(made):
    trees = grouped(made)
    everything = trees.overview(set(trees.groups))
    shown = {(scene_box.part.id) for scene_box in everything.boxes}
    assert shown == {item.id for item in trees.shown.items}
    edges = {(everything.boxes[a].part.id, everything.boxes[b].part.id) for a, b in everything.links}
    assert edges == {(edge.source, edge.target) for edge in trees.shown.edges}


def test_functions_and_lines_are_groups():
    trees = grouped(attention_gradient())
    (whole,) = trees.graphs
    names = outline(whole.parts, 3)
    assert list(names) == ["8 inputs", "values", "cotangents", "7 outputs"]
    told = {group.name for group in trees.groups.values()}
    assert {"attention", "norm", "softmax", "head"} <= told
    places = {group.place.partition(":")[0] for group in trees.groups.values() if group.name == "attention"}
    assert places == {"samples/attention/attention.py"}


@pytest.mark.check
def test_steps_of_a_loop_are_groups():
    for source in (True, False):
        trees = grouped(kinetics_gradient(40, source))
        steps = [group for group in trees.groups.values() if group.name.startswith("step ")]
        assert len(steps) >= 60
        assert any(group.name.endswith(" steps") for group in trees.groups.values())


def test_names_of_models_are_groups():
    made = graph([("neg", k) for k in range(40)], outputs=[("y", 40)])
    made["nodes"] = [
        {"op": "neg", "inputs": [k], **({"meta": {"onnx": {"node": f"/layer{k // 20}/conv{k // 5 % 4}"}}} if k % 5 == 4 else {})}
        for k in range(40)
    ]
    (whole,) = grouped(parse_document(document(made), "test")[0]).graphs
    assert outline(whole.parts, 1) == {f"layer{n}": {f"conv{k}": ... for k in range(4)} for n in range(2)}


def test_many_inputs_are_one_box_that_opens():
    made = graph([("add", k, k + 1) for k in range(299)], inputs=[(f"x{k}", "f64[]") for k in range(300)], outputs=[("y", 598)])
    (whole,) = grouped(parse_document(document(made), "test")[0]).graphs
    assert whole.parts[0].name == "300 inputs" and len(whole.parts[0].parts) <= MOST


@given(st.lists(st.integers(0, 2), min_size=2, max_size=9), st.integers(3, 20), st.integers(0, 5))
def test_repetition_is_found(piece, times, before):
    sequence = [9 + k for k in range(min(before, len(piece)))] + piece * times
    run = repeat(sequence, lambda k: 0)
    assert run is not None and run.start >= 0 and run.start + run.period * run.times <= len(sequence)
    pieces = [sequence[at : at + run.period] for at in range(run.start, run.start + run.period * run.times, run.period)]
    assert all(each == pieces[0] for each in pieces)
    assert 2 * run.period * run.times >= len(sequence)


def test_pieces_begin_where_least_goes_on():
    assert repeat("abc" * 9, lambda k: k % 3 != 1) == Repeat(1, 3, 8)
    assert repeat("abcdefgh", lambda k: 0) is None


def test_groups_are_opened_by_name_and_by_depth():
    made = kinetics_gradient(20)
    closed, deeper = (to_boxes(made, depth=depth) for depth in (0, 1))
    assert 'label="values\\n' in closed and "cluster" in closed and 'label="values\\n' not in deeper
    opened = to_boxes(made, depth=0, open_=["step 3"])
    assert 'label="step 3"' in opened and opened.count(" [label=") > closed.count(" [label=")
    assert to_boxes(made, depth=0) == closed
    with pytest.raises(UnknownNameError, match=r"no group is called 'stepp 3'; did you mean 'step 3'\?"):
        named(grouped(made), ["stepp 3"])


def test_sources_say_where_nodes_come_from():
    made = trace(lambda x: norm_of(x), x="f64[3]", source=True)
    told = [meta["source"] for _, meta in sorted(made.head.node_meta.items())]
    assert len(told) == made.head.n_nodes and all(places[-1].startswith("norm_of tests/render/test_groups.py:") for places in told)
    assert not trace(norm_of, x="f64[3]").head.node_meta
    gradient = kinetics_gradient(3)
    assert len(gradient.head.node_meta) == gradient.head.n_nodes


def norm_of(x):
    return (x * x).sum() ** 0.5


def test_what_has_no_name_among_others_is_told_by_number():
    made = graph([("neg", k) for k in range(40)], outputs=[("y", 40)])
    made["nodes"] = [
        {"op": "neg", "inputs": [k], **({"meta": {"source": [f"f f.py:{k // 10}"]}} if k < 30 else {})} for k in range(40)
    ]
    (whole,) = grouped(parse_document(document(made), "test")[0]).graphs
    assert list(outline(whole.parts, 0)) == ["f.py:0", "f.py:1", "f.py:2", "nodes 30–39"]


def test_constants_that_groups_read_are_not_drawn():
    def shifted(x):
        for _ in range(30):
            x = np.sin(x) + np.arange(3.0) * 2.0
        return x

    trees = grouped(trace(shifted, x="f64[3]"))
    scene = trees.overview({trees.graphs[0].id})
    for (source, target), link in scene.links.items():
        read = scene.boxes[source].part
        assert not (trees.is_constant(read) and isinstance(scene.boxes[target].part, Group)), link.edge
    assert any(isinstance(box.part, Group) for box in scene.boxes)


def test_a_parameter_called_source_is_an_input():
    made = trace(lambda source: source * 2.0, source="f64[3]")
    assert [str(i.key) for i in made.head.inputs] == ["source"] and not made.head.node_meta


def test_bodies_of_loops_have_sources():
    made = trace(lambda x: scan(lambda c, _: (np.sin(c) * c, None), x, None, 3)[0], x="f64[]", source=True)
    attrs = made.head.case(made.head.n_nodes - 1).attrs.to_data(binary=False)
    bodies = [value for value in attrs.values() if isinstance(value, dict) and "nodes" in value]
    assert bodies and all("source" in node["meta"] for body in bodies for node in body["nodes"])


def test_a_loop_says_how_many_steps_it_has():
    made = trace(lambda x: fori_loop(0, 10_000, lambda k, c: np.sin(c), np.exp(x)) * 2.0, x="f64[]")
    assert "scan\\n10,000 steps" in to_dot(made)
    assert "shape=box3d" in to_dot(made, collapse=True)

    def among_others(x):
        x = fori_loop(0, 10_000, lambda k, c: np.sin(c), np.exp(x))
        for function in (np.sin, np.sin, np.cos, np.exp, np.sin, np.tanh, np.exp, np.exp, np.tanh, np.cos, np.sin, np.cosh, np.exp):
            x = function(x)
        return x

    assert "scan: 10,000 steps" in to_boxes(trace(among_others, x="f64[]"), depth=0)


def unrolled(times):
    nodes = []
    for k in range(0, 2 * times, 2):
        nodes += [("sin", k), ("exp", k + 1)]
    return parse_document(document(graph(nodes, outputs=[("y", 2 * times)])), "test")[0]


def test_an_unrolled_loop_is_drawn_once():
    trees = forest(picture(unrolled(200), inside=False))
    (loop,) = [group for group in trees.groups.values() if group.times > 1]
    assert group_label(trees, loop).split("\n")[:2] == ["200 steps", "200 × 2 nodes: 1 exp, 1 sin"]
    page = succeed("dot", "--depth", "0", input=document(graph([("sin", k) for k in range(90)], outputs=[("y", 90)]))).decode()
    assert "90 × 1 node: 1 sin" in page


def test_the_steps_of_a_long_loop_open_where_they_are_asked_for(monkeypatch):
    made = unrolled(200)
    monkeypatch.setattr("tidu_cli.render.scene_dot.draw", lambda text, format_: b'<svg width="9pt" height="9pt"></svg>')
    text = to_boxes(made)
    assert "200 × 2 nodes" in text and "step 1" not in text
    opened = to_boxes(made, open_=["step 7"])
    assert 'label="step 7"' in opened and opened.count('label="exp"') == 1
