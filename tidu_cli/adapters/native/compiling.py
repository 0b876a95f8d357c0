"""The machine's two functions as machine code: compiled once on a machine, and kept on disk."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidu_cli.adapters.native.integers import FUNCTIONS
from tidu_cli.adapters.native.machine import SPECIAL, module_text
from tidu_cli.runtime.caches import cached, keep

Run = Callable[[int, int, int, int], int]
"""From the address of the instructions, the first one's number, the address of the registers and the width, to where it stopped."""


def machine(name: str, code: NDArray[Any]) -> Run:
    """`run` or `run_many`, ready for these instructions.

    They let go of Python's lock, and may run at the same time on registers of their own.
    """
    with _LOADING:
        run, _ = _loaded(name)
        if np.isin(code[:, 0], SPECIAL).any():
            _give_special_functions(name)
    return run


_LOADING = Lock()
"""One thread at a time: of code that two load, one's would be let go of while it runs, or not be told where functions are."""


@lru_cache
def _loaded(name: str) -> tuple[Run, Any]:
    """One of them, compiled if it is not kept on disk, and what holds its code in memory."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    # Without effort, which is as fast: opcodes are too short for registers to be chosen well.
    target = llvm.Target.from_default_triple().create_target_machine(cpu=cpu, features=features, opt=0, jit=True)
    file = f"native-{name}-{_identity(llvm, target.triple, cpu, features)}.o"
    code = cached(file)
    if code is None:
        code = _compiled(llvm, target, name)
        keep(file, code)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    return prototype(engine.get_function_address(name)), engine


_CALLBACKS: dict[str, Any] = {}
"""What the code calls back, kept in memory."""


@lru_cache
def _give_special_functions(name: str) -> None:
    """Tell the code of `run` or `run_many` where SciPy's functions are."""
    _, engine = _loaded(name)
    for special, arity in FUNCTIONS.items():
        variable = engine.get_global_value_address(f"special_{special}")
        ctypes.c_void_p.from_address(variable).value = _address(special, arity)


def _address(name: str, arity: int) -> int | None:
    """Where one of SciPy's functions of doubles is: one that it exports, else one that calls Python's."""
    from scipy import special  # type: ignore[import-untyped]  # slow to import
    from scipy.special import cython_special  # type: ignore[import-untyped]

    address, name_of = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_GetName
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    signature = f"double ({'double, ' * arity}int __pyx_skip_dispatch)".encode()
    for exported in (name, f"__pyx_fuse_0{name}", f"__pyx_fuse_1{name}"):
        capsule = cython_special.__pyx_capi__.get(exported)
        if capsule is not None and name_of(capsule) == signature:
            pointer: int = address(capsule, signature)
            return pointer
    prototype = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * arity, ctypes.c_int)
    _CALLBACKS[name] = prototype(lambda *given: getattr(special, name)(*given[:arity]))
    return ctypes.cast(_CALLBACKS[name], ctypes.c_void_p).value


def _identity(llvm: Any, *of_machine: str) -> str:
    """What the object code depends on: the source of the machine, LLVM and the processor."""
    import llvmlite

    digest = sha256("\n".join((llvmlite.__version__, ".".join(map(str, llvm.llvm_version_info)), *of_machine)).encode())
    here = Path(__file__).parent
    for path in (Path(__file__), *(here / f"{part}.py" for part in ("machine", "opcodes", "integers"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


def _compiled(llvm: Any, target: Any, name: str) -> bytes:
    module = llvm.parse_assembly(module_text(name))
    module.triple = target.triple
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.loop_vectorization = options.loop_interleaving = options.loop_unrolling = False  # which would take seconds
    builder = llvm.create_pass_builder(target, options)
    builder.getModulePassManager().run(module, builder)
    code: bytes = target.emit_object(module)
    return code
