"""Engines on random programs and their derivatives: each node as NumPy has it, to the documented units, or a refusal in a line."""

from __future__ import annotations

import zlib

import numpy as np

from tests.fuzz.choices import Choices
from tests.fuzz.inputs import programs
from tests.fuzz.inputs.programs import PLAIN, Values, drawn
from tests.fuzz.target import Target, require_message
from tests.graphs.interpret import random_value
from tests.runtime.engines.local import require_agreement
from tidu_cli.errors import EvaluationError, MissingRuleError
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.graph import Document
from tidu_cli.graph.types import TensorType
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose


def make(choices: Choices) -> bytes:
    """The name of an engine, a line; then a document as of the target programs, for XLA one of plain operations."""
    if choices.one_in(4):  # as XLA takes longer
        return b"xla\n" + programs.program(choices, 2)
    return b"native\n" + programs.make(choices)


def judge(case: bytes) -> str:
    """Hold an engine to the plain interpreter on the program, its derivative and the transpose of that."""
    name, _, content = case.partition(b"\n")
    engine, document = name.decode(), parse_document(content, "f")[0]
    rng = np.random.default_rng(zlib.crc32(content))
    at = {i.key: drawn(i.type, rng) for i in document.head.inputs}
    with np.errstate(all="ignore"):
        verdict = _agrees(engine, document, at)
        wrt = [i.key for i in document.head.inputs if isinstance(i.type, TensorType) and i.type.inexact]
        try:
            derived = linearize(document, wrt)
            for derivative in (derived, transpose(derived)):
                merged = materialize(derivative)
                tangents = {i.key: random_value(i.type, rng) for i in merged.head.inputs if i.key not in at}
                _agrees(engine, merged, {**at, **tangents})
        except MissingRuleError as error:  # the target programs asks which may be missing
            require_message(error)
    return f"{engine} {verdict}"


def _agrees(engine: str, document: Document, at: Values) -> str:
    """Whether the engine agrees or refuses. Raises AssertionError where it does neither."""
    if engine == "xla" and not PLAIN.issuperset(document.cases.cases[code].op for code in set(document.head.code)):
        return "not tried"
    try:
        require_agreement(engine, document.head, at, fused=engine == "xla")
    except EvaluationError as error:
        require_message(error)
        refusal = str(error)
    else:
        return "agrees"
    assert f"the engine {engine} cannot run it: " in refusal, f"a failure, and no refusal: {refusal}"
    assert "choose the engine numpy" in refusal, f"a refusal without a way out: {refusal}"
    return "refuses"


ENGINE_PROGRAMS = Target("engines", ".engine", make, judge)
