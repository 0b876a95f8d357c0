"""Compiled programs on disk: a second process compiles nothing, and what does not fit is compiled anew."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers import campaign, few

pytestmark = pytest.mark.jax

PROGRAM = """
import sys
import numpy as np
import tidu_cli as tidu
from tidu_cli.adapters.jax import executables

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


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder that one process has written to, and the bits of what it computed."""
    folder = tmp_path_factory.mktemp("first")
    n, bits = run(folder)
    assert n == 1
    return folder, bits


@pytest.fixture
def bits(first: tuple[Path, str], tmp_path: Path) -> str:
    """What the folder of this test has been written with."""
    folder, bits = first
    for file in folder.iterdir():
        shutil.copy2(file, tmp_path)
    return bits


def test_a_second_process_compiles_nothing(tmp_path: Path, bits: str) -> None:
    assert run(tmp_path) == (0, bits)
    (kept,) = tmp_path.glob("xla-*")
    data = kept.read_bytes()
    for damaged in few((data[:-1], data[:100] + b"?" + data[101:], b"", b"xla"), 1):
        kept.write_bytes(damaged)
        assert run(tmp_path) == (1, bits)
    assert run(tmp_path) == (0, bits)


@pytest.mark.campaign
def test_another_version_compiles_anew(tmp_path: Path, bits: str) -> None:
    assert run(tmp_path, "0.0.1") == (1, bits) and run(tmp_path, "0.0.1") == (0, bits)


def test_a_place_that_is_no_directory_keeps_nothing(tmp_path: Path, first: tuple[Path, str]) -> None:
    (tmp_path / "file").write_text("")
    for _ in few(range(2), 1):
        assert run(tmp_path / "file") == (1, first[1])


def test_what_is_kept_that_jax_does_not_take_is_compiled_anew(tmp_path: Path, bits: str) -> None:
    (kept,) = tmp_path.glob("xla-*")
    write = "from tidu_cli.runtime.caches import keep; import sys; keep(sys.argv[1], b'no program')"
    subprocess.run([sys.executable, "-c", write, kept.name], env=os.environ | {"TIDU_CACHE_DIR": str(tmp_path)}, check=True)
    assert run(tmp_path) == (1, bits)
    assert not campaign() or run(tmp_path) == (0, bits)
