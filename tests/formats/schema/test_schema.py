"""The published JSON Schema, and what reading a small document costs to import."""

import subprocess
import sys
from pathlib import Path

import jsonschema

from tidu_cli.formats.schema import json_schema

ROOT = Path(__file__).parents[3]


def test_the_published_schema_is_current():
    made = subprocess.run([sys.executable, "-m", "tidu_cli", "schema"], cwd=ROOT, capture_output=True, check=True)
    published = (ROOT / "schemas" / "document.schema.json").read_bytes()
    assert made.stdout == published, "run: make generated"


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_reading_and_writing_does_not_import_numpy():
    program = """
import sys
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
document, _ = parse_document(sys.stdin.buffer.read(), "stdin")
format_document(document, "msgpack"), format_document(document, "json")
assert "numpy" not in sys.modules
"""
    example = (ROOT / "samples" / "conformance" / "valid" / "constants.json").read_bytes()
    subprocess.run([sys.executable, "-c", program], input=example, cwd=ROOT, check=True)
