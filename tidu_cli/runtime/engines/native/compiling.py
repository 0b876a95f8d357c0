"""The machine's two functions as machine code: compiled once on a machine, and kept on disk."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from tidu_cli.runtime.engines.caches import cached, keep

Run = Callable[[int, int, int, int], int]
"""From the address of the instructions, the first one's number, the address of the registers and the width, to where it stopped."""


@lru_cache
def function(name: str) -> Run:
    """`run` or `run_many`, compiled if it is not kept on disk.

    They let go of Python's lock, and may run at the same time on registers of their own.
    """
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple().create_target_machine(cpu=cpu, features=features, opt=2, jit=True)
    file = f"native-{name}-{_identity(llvm, target.triple, cpu, features)}.o"
    code = cached(file)
    if code is None:
        code = _compiled(llvm, target, name)
        keep(file, code)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _ENGINES.append(engine)
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    return prototype(engine.get_function_address(name))


_ENGINES: list[Any] = []
"""What holds the code in memory."""


def _identity(llvm: Any, *of_machine: str) -> str:
    """What the object code depends on: the source of the machine, LLVM and the processor."""
    import llvmlite

    digest = sha256("\n".join((llvmlite.__version__, ".".join(map(str, llvm.llvm_version_info)), *of_machine)).encode())
    here = Path(__file__).parent
    for path in (here / "machine.py", *sorted((here / "opcodes").glob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


def _compiled(llvm: Any, target: Any, name: str) -> bytes:
    from tidu_cli.runtime.engines.native.machine import module_text

    module = llvm.parse_assembly(module_text(name))
    module.triple = target.triple
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.loop_vectorization = options.loop_interleaving = options.loop_unrolling = False  # which would take seconds
    builder = llvm.create_pass_builder(target, options)
    builder.getModulePassManager().run(module, builder)
    code: bytes = target.emit_object(module)
    return code
