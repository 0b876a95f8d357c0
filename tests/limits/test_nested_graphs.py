"""Graphs within graphs: derivatives take work in proportion to how deep they stand, and not to its square."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import tidu_cli
from tests.loops import F64, document, graph, node
from tidu_cli.formats.read import parse_document

DERIVATIVES = {"hessian": {}, "derivative": {"order": 3}}


def nested(depth: int) -> tidu_cli.Document:
    """sin(x) inside `depth` scans. No two levels are equal: equal ones would be derived only once."""
    found: dict[str, Any] = graph({"c": F64}, [node("sin", 0), *[node("neg", k + 1) for k in range(depth)]], {"c": depth + 1})
    for _ in range(depth):
        found = graph({"c": F64}, [node("scan", 0, length=2, num_consts=0, num_carry=1, body=found)], {"c": 1})
    return parse_document(document(found), "here")[0]


@pytest.mark.parametrize("name", DERIVATIVES)
def test_each_level_more_takes_as_much_work(name, monkeypatch):
    module = importlib.import_module("tidu_cli.transforms.materialize")
    made: list[object] = []
    plain = module.materialize_traced
    monkeypatch.setattr(module, "materialize_traced", lambda *args, **kwargs: made.append(args) or plain(*args, **kwargs))
    graphs = []
    for depth in (4, 6, 8):
        made.clear()
        getattr(tidu_cli, name)(nested(depth), ["c"], **DERIVATIVES[name])
        graphs.append(len(made))
    assert graphs[2] - graphs[1] == graphs[1] - graphs[0] > 0, "the graphs that are made within graphs"
