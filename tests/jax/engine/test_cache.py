"""Compiled programs on disk: a second process compiles nothing, and what does not fit is compiled anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.jax

PROGRAM = """
import sys
import numpy as np
import tidu_cli as tidu
from tidu_cli.adapters.jax.engine import executables

compiled = []
compile_ = executables._compiled
executables._compiled = lambda *args: compiled.append(1) or compile_(*args)
if len(sys.argv) > 1:
    import jax  # which looks at it, too
    import jaxlib.version
    jaxlib.version.__version__ = sys.argv[1]
f = tidu.trace(lambda x: np.linalg.solve(x @ x.T + np.eye(3), x) + np.sin(x), "f64[3,3]")
values = next(iter(tidu.evaluate(f, {"x": np.arange(9.0).reshape(3, 3)}, engine="xla").values()))
print(len(compiled), values.tobytes().hex())
"""


def run(folder: Path, *args: str) -> tuple[int, str]:
    """How many programs a process compiles, and the bits of what it computes."""
    environment = os.environ | {"TIDU_CACHE_DIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", PROGRAM, *args], env=environment, capture_output=True, text=True, check=True)
    n, bits = done.stdout.split()
    return int(n), bits


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    n, bits = run(tmp_path)
    assert n == 1 and run(tmp_path) == (0, bits)
    (kept,) = tmp_path.glob("xla-*")
    data = kept.read_bytes()
    for damaged in (data[:-1], data[:100] + b"?" + data[101:], b"", b"xla"):
        kept.write_bytes(damaged)
        assert run(tmp_path) == (1, bits)
    assert run(tmp_path) == (0, bits)


def test_another_version_compiles_anew(tmp_path: Path) -> None:
    n, bits = run(tmp_path)
    assert n == 1 and run(tmp_path, "0.0.1") == (1, bits) and run(tmp_path, "0.0.1") == (0, bits)


def test_a_place_that_is_no_directory_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    n, bits = run(tmp_path / "file")
    assert n == 1 and run(tmp_path / "file") == (1, bits)


def test_what_is_kept_that_jax_does_not_take_is_compiled_anew(tmp_path: Path) -> None:
    n, bits = run(tmp_path)
    (kept,) = tmp_path.glob("xla-*")
    write = "from tidu_cli.runtime.engines.caches import keep; import sys; keep(sys.argv[1], b'no program')"
    subprocess.run([sys.executable, "-c", write, kept.name], env=os.environ | {"TIDU_CACHE_DIR": str(tmp_path)}, check=True)
    assert n == 1 and run(tmp_path) == (1, bits) and run(tmp_path) == (0, bits)
