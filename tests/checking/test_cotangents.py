"""Whose cotangent a value of a transposed graph is: told where it is so, and of no node that computes something else."""

from __future__ import annotations

import json

import pytest

from tests.cli.running import F, document, graph, succeed
from tidu_cli.checking.numeric.exact_laws import cotangent_owners
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.keys import parse_key
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose


def read(data):
    return parse_document(data, "test")[0]


def reverse(primal):
    return transpose(linearize(primal, [parse_key("x")]))


def test_the_worked_example():
    with open(F, "rb") as file:
        assert cotangent_owners(reverse(read(file.read()))) == {0: [(0, 2)], 1: [(0, 1)]}


def test_accumulated_cotangents_belong_to_the_value_that_was_read_twice():
    primal = read(document(graph([("exp", 0), ("mul", 1, 1)], outputs=[("y", 2)])))
    assert cotangent_owners(reverse(primal))[3] == [(0, 1)]


@pytest.mark.parametrize("make", [lambda d: d, lambda d: linearize(d, [parse_key("x")]), lambda d: materialize(reverse(d))])
def test_nothing_is_said_of_other_graphs(make):
    with open(F, "rb") as file:
        assert cotangent_owners(make(read(file.read()))) == {}


def test_nothing_is_said_where_the_primal_graph_is_another():
    data = json.loads(succeed("transpose", input=succeed("linearize", F, "--wrt", "x")))
    data["graphs"][0]["nodes"][1]["op"] = "sub"
    assert 1 not in cotangent_owners(read(json.dumps(data).encode()))


def test_nothing_is_said_of_a_node_that_computes_something_else():
    data = json.loads(succeed("transpose", input=succeed("linearize", F, "--wrt", "x")))
    data["graphs"][1]["nodes"][2]["op"] = "sub"
    assert cotangent_owners(read(json.dumps(data).encode())) == {0: [(0, 2)], 1: [(0, 1)]}
