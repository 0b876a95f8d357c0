"""Values: files of values and assignments, broken or odd, are taken exactly or refused in a line."""

from __future__ import annotations

import io
import json
import zipfile
from functools import cache
from typing import Any

import msgpack
import numpy as np

import tidu_cli as api
from tests.fuzz.choices import Choices
from tests.fuzz.inputs.documents import FEW_BYTES
from tests.fuzz.mutation import mutate_bytes, mutate_plain
from tests.fuzz.target import Target, require_message
from tests.graphs.interpret import random_value, zeros
from tidu_cli.errors import TiduError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.values import parse_assignment, read_values, write_values
from tidu_cli.graph.graph import Document

TYPES = ("f64[]", "f32[2]", "f16[3]", "bf16[2]", "c64[2]", "c128[]", "i8[3]", "i32[]", "i64[2]", "u8[2,2]", "u64[]", "bool[2]")
RECORDS = ("{a: f64[2], b: i32[]}", "(f64[], (f32[2],))", "datetime[ms][2]", "duration[h][]")


@cache
def identity() -> Document:
    """A document that has an input of every type, and gives each back."""
    inputs = [{"key": f"x{k}", "type": t} for k, t in enumerate((*TYPES, *RECORDS))]
    outputs = [{"key": f"y{k}", "value": k, "type": t} for k, t in enumerate((*TYPES, *RECORDS))]
    text = json.dumps({"tidu": 1, "graphs": [{"name": "f", "inputs": inputs, "nodes": [], "outputs": outputs}]})
    return parse_document(text.encode(), "identity")[0]


@cache
def sources() -> list[bytes]:
    """Values for all inputs, in every format."""
    declared = {i.key: i.type for i in identity().head.inputs}
    rng = np.random.default_rng(0)
    some = {key: random_value(type_, rng) for key, type_ in declared.items()}
    none = {key: zeros(type_) for key, type_ in declared.items()}
    return [write_values(values, format_, declared) for values in (some, none) for format_ in ("json", "msgpack", "npz")]


@cache
def plain_sources() -> list[Any]:
    """Those in JSON as plain data, and as typed data."""
    values = [json.loads(data) for data in sources() if data[:1] == b"{"]
    tensors = [i for i in identity().head.inputs if str(i.type) in TYPES]
    values.append({str(i.key): {"type": str(i.type), "data": [0] * (i.type.size * (2 if i.type.complex else 1))} for i in tensors})
    return values


def make(choices: Choices) -> bytes:
    """A file of values or an assignment with mistakes: `=` begins an assignment."""
    match choices.below(5):
        case 0:
            return mutate_bytes(choices, choices.pick(sources()))
        case 1:
            return _npz(choices)
        case 2:
            name = f"x{choices.below(len(TYPES) + len(RECORDS))}"
            text = json.dumps(mutate_plain(choices, [choices.pick(plain_sources()).get(name)], plain_sources())[:1] or [0])[1:-1]
            data = mutate_bytes(choices, text.encode()) if choices.one_in(3) else text.encode()
            return b"=" + name.encode() + b"=" + data.replace(b"@", b"")  # of files there are tests of their own
        case _:
            plain = mutate_plain(choices, choices.pick(plain_sources()), plain_sources())
            if choices.one_in(3):
                try:
                    return bytes(msgpack.packb(plain))
                except (OverflowError, ValueError):
                    pass  # JSON has larger integers
            return json.dumps(plain).encode()


def _npz(choices: Choices) -> bytes:
    """An archive of arrays of which one has a damaged header, an odd dtype or no end."""
    archive, out = zipfile.ZipFile(io.BytesIO(choices.pick([s for s in sources() if s[:2] == b"PK"]))), io.BytesIO()
    broken = choices.below(len(archive.namelist()))
    with zipfile.ZipFile(out, "w", choices.pick((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))) as changed:
        for k, name in enumerate(archive.namelist()):
            data = archive.read(name)
            if k == broken:
                header, end = data[:128].rstrip(), data[128:]
                data = (
                    mutate_bytes(choices, header).ljust(127)[:127] + b"\n" + end
                    if choices.one_in(2)
                    else mutate_bytes(choices, data)
                )
            changed.writestr(name, data)
    return out.getvalue()


def judge(case: bytes) -> str:
    """Read values, evaluate the identity at them, write what comes out and read it again: it is the same."""
    document = identity()
    declared = {i.key: i.type for i in document.head.inputs}
    try:
        if case[:1] == b"=":
            given = dict([parse_assignment(case[1:].decode("utf-8", "surrogateescape"), declared, declared)])
        else:
            given = read_values(case, "v", declared)
    except TiduError as error:
        require_message(error)
        return "refused"
    rng = np.random.default_rng(0)
    given = {key: random_value(type_, rng) for key, type_ in declared.items()} | given
    try:
        outputs = api.evaluate(document, given, max_memory=FEW_BYTES * 16)
    except TiduError as error:
        require_message(error)
        return "read"
    results = {o.key: (outputs[str(o.key)], o.type) for o in document.head.outputs}
    for format_ in ("npz", "msgpack"):
        written = write_values({k: v for k, (v, _) in results.items()}, format_, {k: t for k, (_, t) in results.items()})
        again = read_values(written, "again", {k: t for k, (_, t) in results.items()})
        back = api.evaluate(document, {f"x{str(k)[1:]}": v for k, v in again.items()}, max_memory=FEW_BYTES * 16)
        assert write_values({k: back[str(k)] for k in results}, format_, {k: t for k, (_, t) in results.items()}) == written, (
            format_
        )
    return "taken"


VALUES = Target("values", ".values", make, judge)
