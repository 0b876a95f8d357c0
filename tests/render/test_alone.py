"""Pages where Graphviz is missing or fails: they lay out their pictures themselves, by a script that they hold."""

from __future__ import annotations

import re
from hashlib import sha256

import pytest

from tests.cli.running import ROOT, F, document, graph, succeed
from tests.graphs.loops import NESTED
from tests.programs import needs
from tests.render.chromium import Browser
from tests.render.test_view import NOW, opened
from tidu_cli.errors import TiduError
from tidu_cli.render import scene_dot

FOLDER = ROOT / "tidu_cli" / "render" / "layout"
WAITING = "document.querySelectorAll('svg[data-dot]').length"
READY = f"new Promise((done) => {{ const look = () => {WAITING} ? setTimeout(look, 10) : done(true); look(); }})"


def test_the_layout_is_what_its_licence_says():
    recorded = re.search("sha256 ([0-9a-f]{64})", (FOLDER / "LICENSE").read_text())
    assert recorded is not None and sha256((FOLDER / "viz.js").read_bytes()).hexdigest() == recorded[1]


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """`tidu view` on a machine without Graphviz."""

    def view(*args, **options) -> bytes:
        with monkeypatch.context() as change:
            change.setenv("PATH", str(tmp_path))
            return succeed("view", *args, **options)

    return view


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


def shown(browser, folder, page: bytes) -> Browser:
    opened(browser, folder, page).evaluate(READY)
    return browser


@needs("chromium")
def test_a_page_draws_itself(browser, bare, tmp_path):
    reverse = succeed("transpose", input=succeed("linearize", F, "--wrt", "x"))
    page = shown(browser, tmp_path, bare("--set", "x=3", "--set", "y@-1=1", input=reverse))
    assert page.evaluate("[...nodes.keys()].sort().join()") == "g0n0,g0n1,g0o0,g0v0,g1n0,g1n1,g1n2,g1n3,g1o0,g1v0"
    assert page.evaluate("nodes.get('g1n2').textContent.trim()") == "c3 = c2 + c1"
    assert page.evaluate("svg.getBoundingClientRect().height") > 400
    for _ in range(4):
        page.press("n")
    assert page.evaluate(NOW) == "g1n2" and page.evaluate("nodes.get('g1o0').classList.contains('later')")
    assert page.messages == [] and len(page.requests) == 1


@needs("chromium")
def test_loops_and_groups_that_open_draw_themselves(browser, bare, tmp_path):
    page = shown(browser, tmp_path, bare(input=NESTED))
    page.evaluate("enter('g0n0')")
    assert page.evaluate("svg.querySelectorAll('.node').length") > 3
    many = document(graph([("sin", k) for k in range(300)], outputs=[("y", 300)]))
    page = shown(browser, tmp_path, bare(input=many))
    group = page.evaluate("svg.querySelector('.opens').dataset.item")
    page.evaluate(f"activate('{group}')")
    assert page.evaluate("here") == group and page.evaluate("svg.querySelectorAll('.node').length") > 1
    assert page.messages == [] and len(page.requests) == 1


@needs("chromium")
@pytest.mark.parametrize("name", ["</script><script>a()</script>", "&lt;b&gt; \"q' \\N", "--><svg onload=alert(1)>"])
def test_names_are_text(browser, bare, tmp_path, name):
    data = document(graph([("neg", 0)], inputs=[(name, "f64[]")], outputs=[("y", 1)]))
    page = shown(browser, tmp_path, bare(input=data))
    assert page.evaluate("nodes.get('g0v0').textContent.trim()") == f"{name}: f64[]"
    assert page.evaluate("document.title").endswith("tidu view") and page.evaluate("document.querySelector('[onload]')") is None
    assert page.messages == []


@needs("chromium", "dot")
def test_one_picture_that_fails_does_not_sink_the_page(browser, tmp_path, monkeypatch):
    draw = scene_dot.draw

    def failing(text, format_):
        if "cluster_1 " in text:  # what is inside the loop
            raise TiduError("Graphviz failed: Unable to reclaim box space")
        return draw(text, format_)

    monkeypatch.setattr(scene_dot, "draw", failing)
    page = succeed("view", input=NESTED)
    assert page.count(b" data-dot=") == 1
    assert shown(browser, tmp_path, page).evaluate("pictureOf('g0n0').querySelectorAll('.node').length") > 3
    broken = re.sub(rb'data-dot="[^"]*"', b'data-dot="digraph {"', page)
    page = shown(browser, tmp_path, broken)
    assert page.evaluate("nodes.has('g0n0')") is True
    assert page.evaluate("pictureOf('g0n0').textContent").startswith("This picture could not be drawn: syntax error")


@needs("dot")
def test_gradients_of_scans_are_drawn():
    made = succeed(
        "build", ROOT / "samples/kalman/kalman.py:log_likelihood", "-i", "theta:f64[2]", "-i", "y:f64[50,2]", "--output", "lp"
    )
    gradient = succeed("grad", "--wrt", "theta", input=made)
    page = succeed("view", input=gradient)
    assert b" data-dot=" not in page and page.count(b"<template") > 5
