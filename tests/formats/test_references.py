"""References that leave the graph: detached values learn their types, and externals are written in one canonical order."""

from dataclasses import replace

import pytest

from tests.formats.plain import DIGESTS, described, read
from tests.formats.test_layout import EXAMPLE
from tidu_cli.errors import DocumentError
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Externals, column

A, B = DIGESTS


def document(nodes, outputs=()):
    inputs = [{"key": "x", "type": "f64[]"}]
    return {"tidu": 1, "graphs": [{"name": "g", "inputs": inputs, "nodes": list(nodes), "outputs": list(outputs)}]}


def test_each_detached_value_learns_its_own_type():
    # The two nodes that learn are of one case; the third needs what the second learnt.
    nodes = [{"op": "mul", "inputs": [0, A]}, {"op": "mul", "inputs": [0, B]}, {"op": "sin", "inputs": [B]}]
    assert [str(d.type) for d in read(document(nodes)).detached] == ["f64[]", "f64[]"]


def test_a_value_detached_twice_in_one_node():
    parsed = read(document([{"op": "mul", "inputs": [A, A], "types": ["f32[3]"]}]))
    assert [(d.digest, str(d.type)) for d in parsed.detached] == [(A, "f32[3]")]


def test_what_one_graph_learns_the_next_one_knows():
    data = document([{"op": "mul", "inputs": [0, A]}])
    data["graphs"].append(
        {"name": "h", "inputs": [], "nodes": [{"op": "sin", "inputs": [A]}], "outputs": [{"key": "a", "value": A}]}
    )
    assert str(read(data).head.outputs[0].type) == "f64[]"


def test_two_outputs_that_disagree_on_a_detached_value():
    outputs = [{"key": "p", "value": A, "type": "f64[]"}, {"key": "q", "value": A, "type": "f32[]"}]
    with pytest.raises(DocumentError, match=r"graph 'g', output 'q': declares type f32\[\], but its value has type f64\[\]"):
        read(document([], outputs))


def test_a_detached_output_of_unknown_type():
    with pytest.raises(DocumentError, match="graph 'g', output 'p': is a detached value of unknown type; give the output's type"):
        read(document([], [{"key": "p", "value": A}]))


def test_packed_nodes_may_read_detached_values_of_known_type():
    data = document([])
    data["graphs"][0]["nodes"] = {
        "table": [{"op": "mul", "inputs": 2, "outputs": 1}],
        "code": [0],
        "args": [0, -1],
        "external": [A],
    }
    expected = read(document([{"op": "mul", "inputs": [0, A]}]))
    assert described(read(data)) == described(expected)
    assert b'"types": ["f64[]"]' in format_document(read(data), "json", listed=False)


def test_externals_are_written_once_each_in_order_of_first_use():
    expected = read(EXAMPLE.encode())
    f, linear = expected.graphs
    # The same references as [[0, 2], [0, 0], [0, 1], [0, 1]]: one unused, one twice, in another order.
    shuffled = replace(
        linear,
        args=column({-1: -4, -2: -2}.get(a, a) for a in linear.args),
        external=Externals(column([0, 0, 0, 0]), column([2, 0, 1, 1])),
    )
    document = replace(expected, graphs=(f, shuffled))
    for format, listed in [("json", True), ("json", False), ("msgpack", True), ("msgpack", False)]:
        assert format_document(document, format, listed=listed) == format_document(expected, format, listed=listed)
