"""Listings name every value once, before it is read, and say of each what it is computed of."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import tidu_cli as tidu
from tests.graphs.strategies import documents
from tests.programs import needs
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.render.listing import key_text, letters, listing
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose

SAMPLES = Path(__file__).parents[2] / "samples"
FILES = sorted(SAMPLES.glob("*.json"))


def require_readable(document: Document) -> None:
    lines = [line for line in listing(document, every=True) if line.startswith("    ") and not line.startswith("     ")]
    nodes = [line for line in lines if " = " in line and not line.startswith("    return ")]
    known = {key_text(i.key) for graph in document.graphs for i in graph.inputs}
    ops = [graph.case(node).op for graph in document.graphs for node in range(graph.n_nodes)]
    hidden = sum(1 for g in document.graphs for c in g.code if g.cases[c].op == "constant" and not g.cases[c].results[0].shape)
    assert len(nodes) == len(ops) - hidden
    defined: list[str] = []
    for line in nodes:
        left, _, right = line.strip().partition(" = ")
        names = re.findall(r"(\S+): ", left)
        assert names and not known & set(names)
        _, *operands = re.sub(r"\[.*\]", "", right).split()
        for operand in operands if not right.startswith("constant") else ():
            name = operand.removesuffix("'")
            assert name in known or not name.isalpha() or name in ("true", "false", "nan", "inf"), line
        known |= set(names)
        defined += names
    assert len(defined) == len(set(defined))


@given(documents())
def test_documents(document: Document) -> None:
    require_readable(document)
    require_readable(transpose(linearize(document, [i.key for i in document.free_inputs])))


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_samples(file: Path) -> None:
    require_readable(parse_document(file.read_bytes(), file.name)[0])


def test_a_derivative() -> None:
    document, _ = parse_document((SAMPLES / "f.json").read_bytes(), "f.json")
    assert list(listing(transpose(linearize(document, [Key("x")])))) == [
        "f(x: f64[]):",
        "    a: f64[] = add x x",
        "    b: f64[] = mul a x",
        "    return y = b",
        "",
        "f@-1(y@-1: f64[]):  # linear, pass 1: cotangents backward",
        "    c: f64[] = mul x y@-1'",
        "    d: f64[] = mul a y@-1'",
        "    e: f64[] = add d' c'",
        "    f: f64[] = add e' c'",
        "    return x@-1 = f",
    ]


def test_definitions_of_own_ops() -> None:
    document, _ = parse_document((SAMPLES / "activations.json").read_bytes(), "activations.json")
    lines = list(listing(document))
    start = lines.index("op huber[delta=1.0](x: f64[...]) -> (y: f64[...]):")
    assert lines[start + 9 : start + 14] == [
        "    backward(x, y@-1):",
        "        a = neg delta",
        "        b = clamp a x delta",
        "        c = mul b y@-1",
        "        return x@-1 = c",
    ]
    assert lines[-6] == "activations(x: f64[5]):"


def test_names_are_none_of_the_keys() -> None:
    assert [letters(n) for n in (0, 25, 26, 51, 52, 701, 702)] == ["a", "z", "aa", "az", "ba", "zz", "aaa"]
    text = tidu.show(tidu.trace(lambda a, c: (a + c) * (a - c), "f64[]", "f64[]", output="d"))
    assert text.splitlines()[1:] == [
        "    b: f64[] = add a c",
        "    e: f64[] = sub a c",
        "    f: f64[] = mul b e",
        "    return d = f",
    ]


def test_large_graphs_are_folded() -> None:
    def function(x: Any) -> Any:
        for _ in range(500):
            x = x * x + 1
        return x

    document = tidu.trace(function, "f64[]")
    lines = tidu.show(document).splitlines()
    assert len(lines) < 50
    (folded,) = [line for line in lines if "…" in line]
    assert folded == "    … 961 nodes: 481 add, 480 mul"
    assert len(tidu.show(document, all=True).splitlines()) == 1002


@needs("dot")
def test_a_line_and_a_page_in_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    document = tidu.load(str(SAMPLES / "f.json"))
    assert str(document) == tidu.show(document)
    assert repr(document) == "<Document f(x: f64[]) -> y: f64[], 2 nodes>"
    assert repr(tidu.linearize(document, "x")) == "<Document f@1(x@1: f64[]) -> y@1: f64[] and 1 other graph, 6 nodes>"
    page = document._repr_html_()  # type: ignore[attr-defined]
    assert "<svg" in page and "b: f64[] = mul a x" in page
    assert document._repr_svg_().rstrip().endswith("</svg>")  # type: ignore[attr-defined]
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert document._repr_svg_() is None  # type: ignore[attr-defined]
    assert "<svg" not in document._repr_html_()  # type: ignore[attr-defined]


def test_names_of_users_are_escaped() -> None:
    text = '{"tidu": 1, "graphs": [{"name": "<b>", "inputs": [{"key": "<i>", "type": "f64[]"}], "nodes": [], "outputs": []}]}'
    document, _ = parse_document(text.encode(), "f.json")
    assert "<b>" not in document._repr_html_() and "<i>" not in document._repr_html_()  # type: ignore[attr-defined]
