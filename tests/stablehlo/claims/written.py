"""Documents that are written as StableHLO, and what other programs make of these: XLA, and IREE."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from tests.tiers import few
from tidu_cli.adapters.stablehlo.module import Module
from tidu_cli.adapters.stablehlo.parsing import plain
from tidu_cli.adapters.stablehlo.text import UnwrittenError, arrays
from tidu_cli.adapters.stablehlo.writer import Templates
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Case, CaseTable, Document, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.types import Type
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN

T = TypeVar("T")


def some(cases: Iterable[T], n: int) -> list[T]:
    """As `few`, but not evenly spaced: examples in all dtypes have a period, and n of them would be of one dtype."""
    every = list(cases)
    return few([every[k] for k in np.random.default_rng(0).permutation(len(every))], n)


def require_round_trip(document: Document, *formats: str) -> None:
    """Raises AssertionError unless what is written is read as the document that it was written of."""
    for format_ in formats or ("mlir", "mlirbc"):
        parsed, told = parse_document(format_document(document, format_), "module")
        assert told == format_
        assert format_document(parsed, "json") == format_document(document, "json")


def is_written(case: Case) -> bool:
    """Whether JAX has a function of a case."""
    try:
        Templates(BUILTIN, lambda text: "%c").of(0, case)
    except UnwrittenError:
        return False
    return True


def document_of(cases: Sequence[Case]) -> Document:
    """A document of one graph, in which there is a node of each of these cases, all with inputs of their own."""
    table = CaseTable(BUILTIN)
    inputs = [Input(Key(f"x{n}.{k}"), t) for n, case in enumerate(cases) for k, t in enumerate(case.operands) if t]
    builder, outputs, given = GraphBuilder(table, inputs), [], 0
    for n, case in enumerate(cases):
        first = builder.append(table.intern(case), range(given, given + len(case.operands)))
        given += len(case.operands)
        outputs += [Output(Key(f"y{n}.{k}"), first + k, t) for k, t in enumerate(case.results)]
    return Document((builder.build("f", outputs),), table)


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
        return [np.asarray(shards[0]) for shards in run.execute_sharded(buffers).disassemble_into_single_device_arrays()]


def by_iree(module: str | bytes, given: Sequence[Any]) -> list[Any]:
    """The results of a module for these arguments, compiled by IREE for this CPU."""
    from iree import compiler, runtime

    options = ["--iree-input-demote-f64-to-f32=false", "--iree-input-demote-i64-to-i32=false", "--iree-llvmcpu-target-cpu=generic"]
    machine_code = compiler.compile_str(module, target_backends=["llvm-cpu"], input_type="stablehlo", extra_args=options)
    context = runtime.SystemContext(config=runtime.Config("local-sync"))
    loaded = runtime.VmModule.copy_buffer(context.instance, machine_code)
    context.add_vm_module(loaded)
    outputs = context.modules[loaded.name]["main"](*given)
    return [np.asarray(y) for y in (outputs if isinstance(outputs, list | tuple) else [outputs])]


def leaves_of(type_: Type, value: Any) -> list[Any]:
    """The arrays that a value is, in the order of a module's arguments; times are their counts."""
    leaf_arrays = []
    for path, leaf in arrays(type_):
        part = value
        for name in path:
            part = part[name] if isinstance(part, Mapping) else part[int(name)]
        array = np.asarray(part)
        leaf_arrays.append(array.view("i8") if array.dtype.kind == "M" else array.astype(numpy_dtype(np, leaf.dtype), copy=False))
    return leaf_arrays


def arguments(document: Document, values: Mapping[Key, Any]) -> list[Any]:
    """The arguments of a document's module."""
    return [x for i in document.free_inputs for x in leaves_of(i.type, values[i.key])]
