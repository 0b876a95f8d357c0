"""The child process that parses modules: where MLIR ends it, a file is refused, and this process goes on."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

from tidu_cli.adapters.stablehlo.module import Module
from tidu_cli.errors import DocumentError

N_FIRST = 1 << 16
"""As many bytes tell what a file is."""

SECONDS = 600
"""How long the child may take."""

_TEXT = re.compile(rb"(?:\s|//[^\n]*\n)*(?:module\b|func\.func\b|\"?builtin\.module\b|#[\w.]+\s*=|![\w.]+\s*=)")


def kind_of(first: bytes) -> str | None:
    """What a file is by its first bytes: text or bytecode of MLIR, a file of jax.export, or None of these."""
    if first.startswith(b"ML\xefR"):
        return "bytecode"
    if _TEXT.match(first):
        return "text"
    # A flatbuffer: where its root is, and in it the table of which fields there are. It has the bytecode somewhere.
    root = int.from_bytes(first[:4], "little")
    if 4 <= root < 256 and b"ML\xefR" in first:
        return "export"
    return None


def parsed(data: bytes, kind: str) -> Module:
    """The module in some bytes. Raises DocumentError, with the line or the place that is wrong where MLIR says it."""
    import msgpack

    command = [sys.executable, "-m", "tidu_cli.adapters.stablehlo.parsing", kind]
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise DocumentError(f"is a module that takes longer than {SECONDS} seconds to parse") from None
    if done.returncode < 0 or done.returncode == 3221225477:
        raise DocumentError("is a damaged module, at which the parser of MLIR ended (it was a process of its own)")
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise DocumentError(f"is a module that MLIR's parser failed at: {words}")
    plain: dict[str, Any] = msgpack.unpackb(done.stdout, strict_map_key=False)
    if "missing" in plain:
        raise DocumentError("modules of StableHLO need jaxlib: pip install 'tidu[jax]'")
    if "error" in plain:
        raise DocumentError(plain["error"])
    return Module.from_plain(plain)
