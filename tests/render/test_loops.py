"""Pictures of loops and branches: boxes with their graphs inside, which open."""

from __future__ import annotations

import re

import pytest

from tests.cli.running import succeed
from tests.graphs.loops import NESTED, SCAN, WHILE, document, graph, node
from tests.programs import needs
from tests.render.chromium import Browser
from tests.render.test_view import data_of, opened


def dot(data: bytes, *options: str) -> str:
    return succeed("dot", *options, input=data).decode()


def test_a_loop_is_a_box_with_its_body_inside_and_what_it_carries_goes_round():
    text = dot(SCAN)
    for label in ("const k: f64[]", "carry s: f64[]", "slice x: f64[]", "scan\\n4 steps"):
        assert text.count(f'"{label}"') == 1
    assert "g0v0 -> g1v0;" in text and "g0v1 -> g1v1;" in text and "g0v2 -> g1v2;" in text
    assert "g1o0 -> g0n0;" in text and "g1o1 -> g0n0;" in text
    assert re.findall(r"(g\d\w\d) -> (g\d\w\d) \[constraint=false", text) == [("g1o0", "g1v1")]
    assert text.index("cluster_g0n0") < text.index("cluster_1 ") < text.index("g1v0 [")


def test_condition_and_body_take_what_goes_round():
    text = dot(WHILE)
    assert 'label="condition"' in text and 'label="body"' in text
    assert [edge in text for edge in ("g0v0 -> g1v0;", "g0v1 -> g2v0;", "g0v2 -> g1v1;", "g0v2 -> g2v1;")] == [True] * 4


def test_graphs_within_graphs_within_graphs():
    text = dot(NESTED)
    assert [f'label="{name}"' in text for name in ("body", "branch 0", "branch 1")] == [True] * 3
    assert text.count("subgraph") == 1 + 2 + 3 + 2
    assert text.count("{") == text.count("}")


@pytest.mark.parametrize("data", [SCAN, WHILE, NESTED])
def test_collapse_draws_a_loop_as_one_node(data):
    text = dot(data, "--collapse")
    assert text.count("subgraph") == 1 and "body" not in text


def test_a_loop_of_too_much_is_folded():
    long = graph({"s": "f64[]"}, [node("sin", k) for k in range(200)], {"s": 200})
    text = dot(document(graph({"s": "f64[]"}, [node("scan", 0, length=3, num_consts=0, num_carry=1, body=long)], {"s": 1})))
    assert text.count("subgraph") == 1 and "scan\\n3 steps" in text and "sin" not in text


def test_tangents_have_their_colour_within_loops():
    text = dot(succeed("linearize", "--wrt", "s0", input=SCAN))
    inside = re.search(r"(g\d)v1 \[label=\"carry ds0: f64\[\]\".*color=\"#c2571a\"", text)
    assert inside is not None
    assert len(re.findall(rf"{inside[1]}\S+ -> {inside[1]}\S+ \[penwidth=2, color=\"#c2571a\"", text)) >= 2


@needs("dot")
def test_the_page_has_a_picture_of_what_is_inside():
    data = data_of(succeed("view", input=NESTED))
    assert {of: (picture["name"], picture["parent"]) for of, picture in data["inside"].items()} == {
        "g0n0": ("scan, node 0", ""),
        "g1n0": ("cond, node 0", "g0n0"),
        "g2n0": ("scan, node 0", "g1n0"),
    }
    assert data["inside"]["g0n0"]["overview"] == "v3, v4 = scan(a, y, ks): the loop of 5 steps"
    assert data["inside"]["g1n0"]["overview"].endswith("the one of 2 branches, chosen by k")
    assert data["items"]["g1v1"]["lines"][0] == "input of the body, type f64[]"


@needs("dot")
@needs("chromium")
def test_loops_open_by_keys_and_by_clicks(tmp_path_factory, tmp_path):
    shown = "[...pictures].filter(([, p]) => !p.hidden).map(([of]) => of).join()"
    middle = "(({x, y, width, height}) => ({x: x + width / 2, y: y + height / 2}))(nodes.get('g1n0').getBoundingClientRect())"
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        page = opened(browser, tmp_path, succeed("view", input=NESTED))
        assert page.evaluate(shown) == "" and page.evaluate("byId('path').hidden") is True
        assert page.evaluate("nodes.get('g0n0').getAttribute('role')") == "button"
        page.evaluate("nodes.get('g0n0').focus()")
        page.press("Enter")
        assert page.evaluate(shown) == "g0n0" and page.evaluate("byId('words').textContent").endswith("the loop of 5 steps")
        at = page.evaluate(middle)
        for kind in ("mousePressed", "mouseReleased"):
            page.mouse(kind, at["x"], at["y"], button="left", clickCount=1)
        assert page.evaluate(shown) == "g1n0"
        assert (
            page.evaluate("[...byId('path').children].map((b) => b.textContent).join(' > ')") == "f > scan, node 0 > cond, node 0"
        )
        assert page.evaluate("svg.getBoundingClientRect().width") > 50
        page.press("Escape")
        assert page.evaluate(shown) == "g0n0" and page.evaluate("document.activeElement.dataset.item") == "g1n0"
        page.press("n")
        assert page.evaluate(shown) == "" and page.evaluate("byId('words').textContent").startswith("It starts from")
        assert page.messages == [] and len(page.requests) == 1


@needs("dot")
def test_captions_are_in_words():
    steps = data_of(succeed("view", input=WHILE))["steps"]
    assert steps[1]["caption"] == "v3 = while(tol, h, a): loop as long as its condition holds; this is a"
