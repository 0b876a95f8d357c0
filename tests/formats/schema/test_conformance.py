"""The conformance samples: each is read as the index says, and the index and the files are what the generator makes."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.formats.plain import described
from tests.formats.schema.agreement import stock
from tidu_cli.errors import DocumentError, called_in_shell
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.identity import digest_text, digests

HERE = Path(__file__).parents[3] / "samples" / "conformance"
INDEX = json.loads((HERE / "index.json").read_text(encoding="utf-8"))
VALID = {path: entry for path, entry in INDEX["files"].items() if entry["verdict"] == "valid"}
INVALID = {path: entry for path, entry in INDEX["files"].items() if entry["verdict"] == "invalid"}

# What the shape of a document alone tells, without knowing what references mean.
SHAPE_DEFECTS = [
    "unknown_document_field", "unknown_graph_field", "unknown_node_field", "no_graphs", "missing_graphs", "missing_op",
    "missing_type", "null_meta", "key_number", "key_kind", "key_extra", "pass_zero", "pass_huge", "unknown_dtype",
    "malformed_type", "unknown_op", "unknown_attr", "missing_attr", "attr_bool", "negative_reference", "bool_reference",
    "triple_reference", "digest_case", "digest_short", "mask_number", "packed_bool", "packed_op", "packed_field", "version_2",
    "own_field", "own_forward", "own_library", "types_list", "types_empty", "types_name", "types_dash", "types_field",
    "types_number", "types_only", "times_unit", "passes_list", "passes_zero", "passes_padded", "passes_huge", "passes_short",
    "passes_case", "passes_null", "size_operator", "size_long", "sizes_list", "sizes_name", "sizes_field", "sizes_bool",
]  # fmt: skip


@cache
def parsed(path):
    return parse_document((HERE / path).read_bytes(), path)


@pytest.mark.parametrize("path", VALID)
def test_valid(path):
    document, form = parsed(path)
    name = VALID[path]["document"]
    assert form == path.rpartition(".")[2]
    assert described(document) == described(parsed(f"valid/{name}.json")[0])
    assert format_document(document, "json") == (HERE / f"valid/{name}.json").read_bytes()
    assert [[digest_text(d) for d in values] for values in digests(document)] == list(INDEX["documents"][name]["digests"].values())


@pytest.mark.parametrize("path", INVALID)
def test_invalid(path):
    mentions = INVALID[path]["mentions"]
    with called_in_shell(), pytest.raises(DocumentError) as raised:
        parse_document((HERE / path).read_bytes(), path)
    message = str(raised.value)
    assert message.startswith(f"{path}: ") and message.isprintable() and len(message) <= 600
    expected = list(mentions["words"])
    if "graph" in mentions:
        expected.append(f"graph '{mentions['graph']}'")
    if "node" in mentions:
        expected.append(f"node {mentions['node']}")
    assert [words for words in expected if words not in message] == [], message


@pytest.mark.parametrize("path", [path for path in VALID if path.endswith(".json")])
def test_valid_json_samples_satisfy_the_schema(path):
    stock().validate(json.loads((HERE / path).read_bytes()))


@pytest.mark.parametrize(
    "name",
    SHAPE_DEFECTS,
)
def test_the_schema_refuses_malformed_samples(name):
    data = json.loads((HERE / "invalid" / f"{name}.json").read_bytes())
    assert not stock().is_valid(data)


def test_the_files_are_those_that_the_index_lists():
    on_disk = {f"{file.parent.name}/{file.name}" for file in HERE.glob("*valid/*")}
    assert on_disk == set(INDEX["files"])


def test_the_files_are_those_that_the_generator_makes():
    program = "import json, sys; import generate; json.dump({k: v.hex() for k, v in generate.contents().items()}, sys.stdout)"
    made = subprocess.run([sys.executable, "-c", program], cwd=HERE, capture_output=True, check=True)
    for path, content in json.loads(made.stdout).items():
        assert (HERE / path).read_bytes().hex() == content, f"{path} is stale: run samples/conformance/generate.py"
