"""Documents that are written as StableHLO, and what other programs make of these: XLA, and IREE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.formats.read import parse_document
from tidu_cli.formats.stablehlo.module import Module
from tidu_cli.formats.stablehlo.parsing import plain
from tidu_cli.formats.stablehlo.writing.values import arrays
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import Type


def require_round_trip(document: Document, *formats: str) -> None:
    """Raises AssertionError unless what is written is read as the document that it was written of."""
    for format_ in formats or ("mlir", "mlirbc"):
        found, told = parse_document(format_document(document, format_), "module")
        assert told == format_
        assert format_document(found, "json") == format_document(document, "json")


def in_this_process(data: bytes, kind: str) -> Module:
    """What a child process parses otherwise: a module that we wrote does not end this one."""
    return Module.from_plain(plain(data, kind))


def by_xla(module: str | bytes, given: Sequence[Any]) -> list[Any]:
    """The results of a module for these arguments, by XLA alone: text or bytecode, in which it knows portable artifacts, too.

    LLVM optimizes nothing: most of a test's time would be its.
    """
    import jax
    from jaxlib.xla_client import CompileOptions

    options = CompileOptions()
    options.executable_build_options.debug_options.xla_backend_optimization_level = 0
    device = jax.local_devices(backend="cpu")[0]
    run = device.client.compile_and_load(module, [device], options)
    with jax.enable_x64(True):
        buffers = [jax.device_put(x, device) for x in given]
        return [np.asarray(found[0]) for found in run.execute_sharded(buffers).disassemble_into_single_device_arrays()]


def leaves_of(type_: Type, value: Any) -> list[Any]:
    """The arrays that a value is, in the order of a module's arguments. Records are dicts of their fields."""
    found = []
    for path, leaf in arrays(type_):
        part = value
        for name in path:
            part = part[name]
        found.append(np.asarray(part))
    return found


def arguments(document: Document, values: Mapping[Key, Any]) -> list[Any]:
    """The arguments of a document's module."""
    return [x for i in document.free_inputs for x in leaves_of(i.type, values[i.key])]
