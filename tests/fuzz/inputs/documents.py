"""Documents: broken or odd ones are refused in a line, and what is read can be written, checked, derived, run and drawn."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

import tidu_cli as api
from tests.formats.plain import described
from tests.fuzz.choices import Choices
from tests.fuzz.mutation import mutate_bytes, mutate_plain
from tests.fuzz.target import Target, require_message
from tests.graphs.interpret import random_value
from tidu_cli.checking.static import findings
from tidu_cli.errors import TiduError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document
from tidu_cli.graph.types import leaves
from tidu_cli.lax.vocabulary import vocabulary

SAMPLES = Path(__file__).parents[3] / "samples"

FEW_BYTES = 2**16
"""Of inputs and of what evaluation may hold: larger ones are not run, which would be the time of a thousand cases."""


@cache
def sources() -> list[bytes]:
    """Valid documents in all forms: samples, and derivatives of them."""
    texts = [f.read_bytes() for f in sorted(SAMPLES.glob("*.json"))]
    texts += [f.read_bytes() for f in sorted((SAMPLES / "conformance" / "valid").iterdir()) if f.is_file()]
    documents = [text for text in texts if len(text) < 6000]
    for text in list(documents):
        document = parse_document(text, "sample")[0]
        documents.append(format_document(document, "msgpack"))
        documents.append(format_document(document, "json", listed=False))
        for derive in (api.vjp, api.jvp, lambda d, wrt: api.linearize(d, wrt, detach=True)):
            try:
                documents.append(format_document(derive(document, [str(i.key) for i in document.head.inputs]), "json"))
            except TiduError:
                continue  # an input without tangents, say: there are others
    return documents


@cache
def plain_sources() -> list[Any]:
    """The same as plain data, of those that JSON can hold."""
    return [json.loads(data) for data in sources() if data[:1] == b"{"]


def make(choices: Choices) -> bytes:
    """A document with mistakes in its bytes, or in its structure."""
    if choices.one_in(5):
        return mutate_bytes(choices, choices.pick(sources()))
    plain = mutate_plain(choices, choices.pick(plain_sources()), choices.pick(plain_sources()))
    if choices.one_in(3):
        try:
            return bytes(msgpack.packb(plain))
        except (OverflowError, ValueError):
            pass  # JSON has larger integers
    return json.dumps(plain, ensure_ascii=not choices.one_in(2)).encode("utf-8", "surrogatepass")


def judge(case: bytes) -> str:
    """Read a document, and do with it what all commands do."""
    try:
        document, _ = parse_document(case, "f")
    except TiduError as error:
        require_message(error)
        return "refused"
    same = described(document)
    for format_ in ("json", "msgpack"):
        for listed in (True, False):
            written = format_document(document, format_, listed=listed)
            assert described(parse_document(written, "f")[0]) == same, f"another document in {format_}, listed={listed}"
    work_on(document)
    return "read"


def work_on(document: Document) -> None:
    """Every transform, check and picture works, or says in a line why not."""
    attempt(lambda: list(findings(document, vocabulary(document.cases))))
    attempt(api.to_dot, document)
    attempt(api.transpose, document)
    attempt(api.matrix, document)
    derived = attempt(api.linearize, document, [i.key for graph in document.graphs for i in graph.inputs])
    if derived is not None:
        attempt(api.transpose, derived)
        attempt(api.materialize, derived)
    whole = attempt(api.materialize, document)
    if whole is not None and sum(t.size for i in whole.head.inputs for _, t in leaves(i.type)) < FEW_BYTES // 8:
        rng = np.random.default_rng(0)
        given = {i.key: random_value(i.type, rng) for i in whole.head.inputs}
        attempt(lambda: api.evaluate(whole, given, max_memory=FEW_BYTES * 16))


def attempt(work: Callable[..., Any], *args: Any) -> Any:
    """What work gives, or None where it fails as it may."""
    try:
        return work(*args)
    except TiduError as error:
        require_message(error)
        return None


DOCUMENTS = Target("documents", ".document", make, judge)
