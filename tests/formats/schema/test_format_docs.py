"""What docs/format.md says holds: its examples are documents, and its digests are those of the implementation it gives."""

import hashlib
import json
import re
import struct
from pathlib import Path

import msgpack
import pytest

from tests.formats.plain import read, records_of
from tests.formats.test_layout import EXAMPLE
from tidu_cli.formats.write import format_document
from tidu_cli.graph.identity import digest_text
from tidu_cli.graph.identity import digests as our_digests
from tidu_cli.graph.keys import key_from_json, parse_key, passes_to_json
from tidu_cli.graph.text import instant_from_text, parse_value_type
from tidu_cli.graph.types import UNITS
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.transforms.linearize import linearize

ROOT = Path(__file__).parents[3]
DOCS = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
JSON_BLOCKS = re.findall(r"```json\n(.*?)```", DOCS, re.DOTALL)
(PYTHON,) = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
VALID = ROOT / "samples" / "conformance" / "valid"


@pytest.fixture(scope="module")
def digests():
    namespace: dict = {}
    exec(PYTHON, namespace)
    return namespace["digests"]


def test_the_example_is_the_worked_example_in_its_layout():
    assert JSON_BLOCKS[0] == EXAMPLE


def test_the_example_of_passes_is_what_linearize_writes():
    f = read((ROOT / "samples" / "f.json").read_bytes())
    x = parse_key("x")
    assert passes_to_json(linearize(linearize(f, [x]), [x]).passes) == json.loads(JSON_BLOCKS[4])


def test_the_example_of_a_graph_within_a_node_is_read_and_written():
    inputs = [("k", "f64[]"), ("s", "f64[]"), ("xs", "f64[4]")]
    declared = [{"key": key, "type": type_} for key, type_ in inputs]
    graph = {"name": "f", "inputs": declared, "nodes": [json.loads(JSON_BLOCKS[3])], "outputs": []}
    written = json.loads(format_document(read(json.dumps({"tidu": 1, "graphs": [graph]}).encode()), "json"))
    assert written["graphs"][0]["nodes"] == graph["nodes"]


def number_of(reference, g, first, known):
    """The number of a value, by the numbers of the graphs' first values and those of inputs that are others."""
    h, v = reference if isinstance(reference, list) else (g, reference)
    return known.get((h, v), first[h] + v)


@pytest.mark.parametrize("name", ["worked_example", "bindings", "shared_inputs"])
def test_an_identity_can_be_computed_from_what_the_page_says(name):
    """For documents whose nodes have one result and no attrs."""
    data = json.loads((VALID / f"{name}.json").read_bytes())
    document = read(data)
    graphs = data["graphs"]
    first = [0]
    for graph in graphs:
        first.append(first[-1] + len(graph["inputs"]) + len(graph["nodes"]))
    bound = {json.dumps(b["input"]): b["value"] for b in data.get("bindings", [])}
    known, of_key = {}, {}
    for g, graph in enumerate(graphs):
        for v, i in enumerate(graph["inputs"]):
            key = json.dumps(i["key"])
            if key not in of_key:
                of_key[key] = number_of(bound[key], g, first, known) if key in bound else first[g] + v
            known[g, v] = of_key[key]

    def kind(node):
        mask = node["role"]["linearized"]["active_mask"] if "role" in node else None
        encoded = msgpack.packb(["node", node["op"], node.get("attrs", {}), mask, [], 0])
        return [hashlib.sha256(encoded).digest(), len(node["inputs"])]

    nodes = [(g, node) for g, graph in enumerate(graphs) for node in graph["nodes"]]
    kinds = sorted(map(list, {tuple(kind(node)) for _, node in nodes}))
    text = {json.dumps(i["key"]): str(key_from_json(i["key"])) for graph in graphs for i in graph["inputs"]}
    inputs = [
        [[text[json.dumps(i["key"])], i["type"], known[g, v]] for v, i in enumerate(graph["inputs"])]
        for g, graph in enumerate(graphs)
    ]
    counts = [[len(graph["nodes"]), sum(len(node["inputs"]) for node in graph["nodes"])] for graph in graphs]
    last = len(graphs) - 1
    outputs = [[str(key_from_json(o["key"])), o["type"], number_of(o["value"], last, first, known)] for o in graphs[-1]["outputs"]]
    wrt = next(
        i for g, graph in enumerate(graphs) for i in graph["inputs"] if json.dumps(i["key"]) not in bound and i["type"] == "f64[]"
    )
    header = ["linearize", [[i, *n] for i, n in zip(inputs, counts, strict=True)], [], kinds, outputs]
    header += [[[str(key_from_json(wrt["key"])), wrt["type"]]], []]
    numbers = [kinds.index(kind(node)) for _, node in nodes]
    numbers += [number_of(reference, g, first, known) for g, node in nodes for reference in node["inputs"]]
    expected = hashlib.sha256(msgpack.packb(header) + struct.pack(f"<{len(numbers)}i", *numbers)).hexdigest()
    derived = linearize(document, [key_from_json(wrt["key"])])
    assert derived.passes == {document.next_pass(): f"sha256:{expected}"}


def test_the_packed_example_is_read():
    data = json.loads(EXAMPLE)
    data["graphs"][1]["nodes"] = json.loads(JSON_BLOCKS[5])
    data["graphs"][1]["outputs"][0]["value"] = 3
    assert read(data).head.n_nodes == 3


def test_the_record_types_and_the_texts_of_types_are_read():
    records = records_of(json.loads(JSON_BLOCKS[1]))
    assert str(records["Segment"].fields) == str((("a", records["Point"]), ("b", records["Point"])))
    table = re.search(r"The text of a type is one of these:\n\n(.*?)\n\n", DOCS, re.DOTALL)
    texts = [text for row in table[1].splitlines()[2:] for text in re.findall(r"`([^`]+)`", row.split("|")[1])]
    assert len(texts) == 6
    for text in texts:
        assert str(parse_value_type(text, records)) == text


def test_units_of_time_are_named_in_order():
    listed = re.search(r"The units are NumPy's: (.*?)\. The", DOCS, re.DOTALL)
    assert listed and tuple(listed[1].split(", ")) == UNITS


def test_the_texts_of_times_are_read():
    quoted = re.search(r"as in\n(.*?)\. A space may stand", DOCS, re.DOTALL)
    instants = [instant_from_text(text, "ms") for text in re.findall(r'`"([^"]+)"`', quoted[1])]
    assert len(instants) == 3 and instants[0] == instants[2]


def test_the_example_of_an_own_op_is_that_of_the_conformance_samples():
    definitions = json.loads((VALID / "own_ops.json").read_bytes())["ops"]
    assert json.loads(JSON_BLOCKS[2]) == {"softplus": definitions["softplus"]}


@pytest.mark.parametrize(
    "name",
    [
        "worked_example",
        "bindings",
        "shared_inputs",
        "detached",
        "attrs",
        "keys",
        "no_nodes",
        "own_ops",
        "own_derivative",
        "record_types",
        "loop",
        "loops_nested",
        "own_loop",
    ],
)
def test_the_implementation_of_digests_agrees_with_ours(name, digests):
    data = (VALID / f"{name}.json").read_bytes()
    assert digests(json.loads(data)) == [[digest_text(d) for d in values] for values in our_digests(read(data))]


def test_the_digests_of_the_example(digests):
    printed = re.findall(r"^[x12]  (sha256:[0-9a-f]{64})$", DOCS, re.MULTILINE)
    assert printed == digests(json.loads((ROOT / "samples" / "f.json").read_bytes()))[0]


def test_every_dtype_is_named():
    from tidu_cli.graph.types import ITEMSIZE

    listed = re.search(r"The dtypes: (.*?)\. A type", DOCS, re.DOTALL)
    assert listed and re.split(r",\s+", listed[1]) == list(ITEMSIZE)


def test_the_schema_knows_every_op():
    schema = json.loads((ROOT / "schemas" / "document.schema.json").read_bytes())
    assert schema["$defs"]["BuiltInOp"]["properties"]["op"]["enum"] == sorted(BUILTIN.primitives)
