"""Own primitives in pictures, pages and summaries, through the derivatives of them up to third order."""

from __future__ import annotations

import json

import pytest

from tests.cli.running import document, graph, invoke, succeed
from tests.programs import needs
from tests.render.test_view import data_of
from tidu_cli.checking.numeric.exact_laws import cotangent_owners
from tidu_cli.formats.read import parse_document
from tidu_cli.render.dot import to_dot
from tidu_cli.render.picture import picture
from tidu_cli.render.words import Words
from tidu_cli.runtime.memory import flops

PASSED = {"cotangent": {"of": "y", "pass": 1}}
OPS = {
    "softplus": {  # with a backward graph, so that its derivative is an op
        "inputs": [{"key": "x", "type": "f64[...]"}],
        "outputs": [{"key": "y", "type": "f64[...]"}],
        "forward": graph([("exp", 0), ("log1p", 1)], outputs=[("y", 2)]),
        "backward": graph(
            [("logistic", 0), ("mul", 2, 1)],
            inputs=[("x", "f64[]"), (PASSED, "f64[]")],
            outputs=[({"cotangent": {"of": "x", "pass": 1}}, 3)],
        ),
    },
    "scaled": {  # with two inputs
        "inputs": [{"key": "x", "type": "f64[...]"}, {"key": "s", "type": "f64[...]"}],
        "outputs": [{"key": "y", "type": "f64[...]"}],
        "forward": graph([("mul", 0, 1)], inputs=[("x", ""), ("s", "")], outputs=[("y", 2)]),
        "backward": graph(
            [("mul", 2, 1), ("mul", 2, 0)],
            inputs=[("x", ""), ("s", ""), (PASSED, "")],
            outputs=[({"cotangent": {"of": "x", "pass": 1}}, 3), ({"cotangent": {"of": "s", "pass": 1}}, 4)],
        ),
    },
    "flip": {  # linear
        "inputs": [{"key": "x", "type": "f64[...]"}],
        "outputs": [{"key": "y", "type": "f64[...]"}],
        "forward": graph([("neg", 0)], outputs=[("y", 1)]),
        "transpose": graph([("neg", 0)], inputs=[(PASSED, "")], outputs=[({"cotangent": {"of": "x", "pass": 1}}, 1)]),
    },
}


def _bare(data):
    """A graph of a definition: without name and types."""
    return {
        "inputs": [{"key": i["key"]} for i in data["inputs"]],
        "nodes": data["nodes"],
        "outputs": [{"key": o["key"], "value": o["value"]} for o in data["outputs"]],
    }


def own(nodes, output, type_="f64[3]") -> bytes:
    data = json.loads(document(graph(nodes, inputs=[("a", type_)], outputs=[("z", output)])))
    kinds = ("forward", "backward", "transpose")
    data["ops"] = {name: {k: _bare(v) if k in kinds else v for k, v in op.items()} for name, op in OPS.items()}
    return json.dumps(data).encode()


CHAIN = own([("sin", 0), ("softplus", 1), ("scaled", 2, 0), ("flip", 3)], 4)


@pytest.fixture(scope="module")
def orders():
    """The document and its derivatives: forward, reverse, forward over reverse, and the third order in reverse."""
    documents = [CHAIN]
    for command in (
        ["linearize", "--wrt", "a"],
        ["transpose"],
        ["linearize", "--wrt", "a"],
        ["linearize", "--wrt", "a"],
        ["transpose"],
    ):
        documents.append(succeed(*command, input=documents[-1]))
    return [*documents, succeed("materialize", input=documents[-1])]


def captions(data):
    made = parse_document(data, "test")[0]
    return [caption for _, caption in Words(picture(made), cotangent_owners(made)).captions()]


def test_words(orders):
    assert captions(orders[0]) == [
        "v1 = sin a: sine",
        "v2 = softplus(v1): softplus, defined in the document",
        "v3 = scaled(v2, a): scaled, defined in the document",
        "v4 = flip(v3): flip, defined in the document; this is z",
    ]
    assert captions(orders[1])[1:] == [
        "t2 = softplus′(v1) · t1: t1 goes forward through the derivative of softplus, with v1 and v2 held fixed",
        "t3 = scaled′(v2, a) · (t2, t0): t2 and t0 go forward through the derivative of scaled, with v2, a and v3 held fixed",
        "t4 = flip(t3): t3 goes forward through flip; this is the tangent of z",
    ]


@needs("dot")
def test_an_op_of_a_library_names_the_file_alone(tmp_path):
    library, uses = tmp_path / "library.json", json.loads(CHAIN)
    library.write_text(json.dumps({"tidu": 1, "ops": uses.pop("ops"), "graphs": []}))
    page = succeed("view", "--ops", library, input=json.dumps(uses).encode())
    assert b"softplus, defined in library.json" in page and str(tmp_path).encode() not in page


def test_a_derivative_by_some_of_the_inputs():
    data = json.loads(own([("scaled", 0, 0)], 1))
    data["graphs"][0]["inputs"].append({"key": "b", "type": "f64[3]"})
    data["graphs"][0]["nodes"][0]["inputs"] = [0, 1]
    data["graphs"][0]["outputs"][0]["value"] = 2
    told = captions(succeed("linearize", "--wrt", "b", input=json.dumps(data).encode()))
    assert told[0].startswith("t1 = scaled′(a, b) · (0, t0): t0 goes forward through the derivative of scaled")


@pytest.mark.parametrize("collapse", [False, True])
def test_pictures_of_all_orders(orders, collapse):
    for data in orders:
        made = parse_document(data, "test")[0]
        assert to_dot(made, types=True, collapse=collapse).startswith("digraph")
        shown = picture(made, collapse=collapse)
        assert {item.id for item, _ in Words(shown, cotangent_owners(made)).captions()} <= {item.id for item in shown.items}


@needs("dot")
def test_pages_of_all_orders(orders):
    for data in orders:
        assert len(data_of(succeed("view", input=data))["steps"]) > 2
    page = data_of(succeed("view", "--set", "a=[1,2,3]", input=orders[0]))
    assert page["items"]["g0n1"]["lines"][0] == "softplus: softplus(x) (defined in the document)"
    assert page["steps"][2]["numbers"].startswith("v2 = [1.")


def test_conversion_difference_and_summary_of_all_orders(orders, tmp_path):
    for k, data in enumerate(orders):
        text, packed = tmp_path / f"{k}.json", tmp_path / f"{k}.msgpack"
        text.write_bytes(data)
        succeed("convert", text, "-o", packed)
        succeed("diff", "--exact", text, packed)
        if k:  # as written by a command
            assert succeed("convert", packed, "--format", "json") == data
        assert json.loads(succeed("info", text, "--json"))["evaluation"]["nodes_of_unknown_flops"] == 0
    other = json.loads(CHAIN)
    other["ops"]["softplus"]["forward"]["nodes"][0]["op"] = "exp2"
    result = invoke("diff", "--json", tmp_path / "0.json", "-", input=json.dumps(other).encode())
    assert result.exit_code == 1 and json.loads(result.stdout)["computed_differently"] == ["z"]


def test_flops_are_those_of_the_forward_graph(orders):
    assert flops(parse_document(orders[0], "test")[0].head).known == 3 * (1 + 2 + 1 + 1)
    # sin's tangent 1; softplus: logistic and mul; scaled: two products and their sum; flip: neg
    assert flops(parse_document(orders[1], "test")[0].head).known == 3 * (1 + 2 + 3 + 1)
    # and the values that are read: all but the last; and cos
    assert json.loads(succeed("info", "--json", input=orders[1]))["evaluation"]["flops"] == 3 * ((1 + 2 + 1) + 1 + (1 + 2 + 3 + 1))


def test_flops_of_ops_that_are_made_of_ops_are_counted_once():
    """Thirty ops, each the former twice: two to the thirtieth operations, counted in no time."""
    ops = {"o0": {"inputs": [{"key": "x", "type": "f64[]"}], "outputs": [{"key": "y", "type": "f64[]"}]}}
    ops["o0"]["forward"] = _bare(graph([("neg", 0)], outputs=[("y", 1)]))
    for k in range(1, 31):
        ops[f"o{k}"] = ops["o0"] | {"forward": _bare(graph([(f"o{k - 1}", 0), (f"o{k - 1}", 1)], outputs=[("y", 2)]))}
    data = json.loads(document(graph([("o30", 0)], outputs=[("y", 1)]))) | {"ops": ops}
    assert flops(parse_document(json.dumps(data).encode(), "test")[0].head).known == 2**30
