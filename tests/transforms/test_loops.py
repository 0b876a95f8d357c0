"""Loops and branches under the transforms, where rules are missing: messages name the nested place."""

from __future__ import annotations

import pytest

from tests.graphs.loops import F64, I32, document, graph, node
from tidu_cli.errors import MissingRuleError
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.keys import parse_key
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.families import changed
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose

PLAIN = PrimitiveSet.of([changed(p, jvp=None) if p.name == "sin" else p for p in BUILTIN])
"""Without a rule for sin."""

SINE = graph({"x": F64}, [node("neg", 0), node("sin", 1)], {"y": 2})
GREATER = graph({"x": F64}, [node("gt", 0, 0)], {"go": 1})
LOOP = graph({"x": F64}, [node("scan", 0, length=3, num_consts=0, num_carry=1, body=SINE)], {"y": 1})
DOUBLED = graph({"x": F64}, [node("add", 0, 0)], {"y": 1})


@pytest.mark.parametrize(
    ("case", "place"),
    [
        (node("scan", 0, length=3, num_consts=0, num_carry=1, body=SINE), "node 0 (scan), body, node 1 (sin)"),
        (node("scan", 0, length=3, num_consts=0, num_carry=1, body=LOOP), "node 0 (scan), body, node 0 (scan), body, node 1 (sin)"),
        (node("while", 0, cond_consts=0, body_consts=0, condition=GREATER, body=SINE), "node 0 (while), body, node 1 (sin)"),
        (node("cond", 1, 0, branches=[DOUBLED, LOOP]), "node 0 (cond), branches[1], node 0 (scan), body, node 1 (sin)"),
    ],
)
def test_missing_rules_are_named_by_place(case, place):
    data = document(graph({"x": F64, "i": I32}, [case], {"y": 2}))
    read, _ = parse_document(data, "f", primitives=PLAIN)
    with pytest.raises(MissingRuleError, match="missing JVP rule for sin") as refused:
        linearize(read, [parse_key("x")], primitives=PLAIN)
    assert str(refused.value).startswith(f"graph 'f', {place}: ")


HALVED = node("while", 0, cond_consts=0, body_consts=0, condition=GREATER, body=DOUBLED)


@pytest.mark.parametrize(
    "case",
    [
        HALVED,
        node("scan", 0, length=3, num_consts=0, num_carry=1, body=graph({"x": F64}, [HALVED], {"y": 1})),
        node("cond", 1, 0, branches=[DOUBLED, graph({"x": F64}, [HALVED], {"y": 1})]),
    ],
)
def test_reverse_mode_of_while_is_refused_at_any_depth(case):
    read, _ = parse_document(document(graph({"x": F64, "i": I32}, [case], {"y": 2})), "f")
    with pytest.raises(MissingRuleError, match="has no transpose: how often it runs") as refused:
        transpose(linearize(read, [parse_key("x")]))
    assert str(refused.value).count("graph '") == 1 and "(while): has no transpose" in str(refused.value)
