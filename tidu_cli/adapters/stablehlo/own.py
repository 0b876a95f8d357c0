"""Modules that tidu wrote as the documents that they were.

A module has its document as JSON in `tidu.document`, where large constants are those of the module, and in `tidu.checksum` what
everything else in it comes to, whose text or bytes may be in any form. A module that somebody has changed is read as any other.
Who means to deceive can write the checksum anew: whether a module runs its document, `writing.files.is_written` tells.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgpack

from tidu_cli.adapters.stablehlo.module import Block, Module
from tidu_cli.graph.types import parse_type

DOCUMENT, CHECKSUM = "tidu.document", "tidu.checksum"
"""The attributes of a module that make a document of it."""

FEW_BYTES = 32
"""Constants of no more bytes stand in the document as they are."""

_BYTES, _CONSTANT = "tidu.bytes", "tidu.constant"
"""What stands in JSON for bytes: themselves in base64, or the number of an operation of the module that makes this constant."""

_MALFORMED = (KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError)
"""What reading claims that nobody checked may raise."""


def claims(plain: Mapping[str, Any], module: Module) -> dict[str, str]:
    """The attributes that make a document of a module, which has neither yet. `plain` is the data of the document's msgpack."""
    numbers = {hashlib.sha256(_data(value)).digest(): n for n, value in _constants(module) if _n_bytes(value) > FEW_BYTES}

    def encoded(data: bytes) -> dict[str, Any]:
        number = None if len(data) <= FEW_BYTES else numbers.get(hashlib.sha256(data).digest())
        return {_BYTES: base64.b64encode(data).decode()} if number is None else {_CONSTANT: number}

    document = json.dumps(_encoded(plain, encoded), ensure_ascii=False, separators=(",", ":"))
    return {DOCUMENT: document, CHECKSUM: checksum(module, document)}


def claims_document(module: Module) -> bool:
    """Whether a module says which document it was written of."""
    return DOCUMENT in module.attributes


def claimed(module: Module) -> Any:
    """The plain data of the document that a module was written of; None if it was not, or has been changed."""
    document, digest = module.attributes.get(DOCUMENT), module.attributes.get(CHECKSUM)
    if not isinstance(document, str) or digest != checksum(module, document):
        return None
    constants = dict(_constants(module))
    try:
        return json.loads(document, object_hook=lambda fields: _decoded(fields, constants))
    except _MALFORMED:
        return None


def checksum(module: Module, document: str) -> str:
    """A digest of a document and of a module, of which neither names of values nor places in the text are told."""
    sha, packer = hashlib.sha256(), msgpack.Packer(use_bin_type=True)
    attributes = {name: value for name, value in module.attributes.items() if name not in (DOCUMENT, CHECKSUM)}
    for part in (document, module.name, _sorted(attributes), len(module.functions)):
        sha.update(packer.pack(part))
    for f in module.functions.values():
        ports = [_sorted(a) for attributes in (f.argument_attributes, f.result_attributes) for a in attributes]
        sha.update(packer.pack([f.name, f.public, ports, list(f.results)]))
        for part in _parts(f.body):
            sha.update(packer.pack(part))
    return f"sha256:{sha.hexdigest()}"


def _parts(block: Block) -> Iterator[list[Any]]:
    """What a block is, piece by piece."""
    yield [block.first, list(block.arguments), len(block.operations), list(block.results)]
    for op in block.operations:
        yield [op.name, list(op.operands), op.first, list(op.results), _sorted(op.attributes), len(op.regions)]
        for inner in op.regions:
            yield from _parts(inner)


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [[name, _sorted(value[name])] for name in sorted(value)]
    return [_sorted(part) for part in value] if isinstance(value, list) else value


def _encoded(value: Any, encoded: Callable[[bytes], object]) -> Any:
    if isinstance(value, bytes):
        return encoded(value)
    if isinstance(value, dict):
        return {name: _encoded(part, encoded) for name, part in value.items()}
    return [_encoded(part, encoded) for part in value] if isinstance(value, list) else value


def _decoded(fields: dict[str, Any], constants: Mapping[int, Mapping[str, Any]]) -> Any:
    if len(fields) != 1:
        return fields
    if _BYTES in fields:
        return base64.b64decode(fields[_BYTES])
    return _data(constants[fields[_CONSTANT]]) if _CONSTANT in fields else fields


def _n_bytes(value: Mapping[str, Any]) -> int:
    return parse_type(value["type"]).nbytes


def _data(value: Mapping[str, Any]) -> bytes:
    """The bytes of an array, of which a module may have but the one element that is repeated."""
    data: bytes = value["data"] if "data" in value else value["splat"] * parse_type(value["type"]).size
    return data


def _constants(module: Module) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The arrays that operations of a module make, by the operations' numbers."""
    for number, op in enumerate(module.operations()):
        if op.name == "stablehlo.constant":
            yield number, op.attributes["value"]
