"""Object code on disk: what is lost, damaged or cannot be kept is compiled again, and gives the same."""

from __future__ import annotations

import os
import subprocess
import sys

import llvmlite
import llvmlite.binding as llvm
import pytest

from tests.tiers import few
from tests.waiting import LIMIT
from tidu_cli.adapters.native import compiling
from tidu_cli.runtime import caches

SCRIPT = """
import numpy as np
from tests.runtime.graphs import Sketch
from tests.runtime.native.agreement import native
from tidu_cli.graph.keys import Key
from tidu_cli.adapters.native import compiling
compiled, real = [], compiling._compiled
compiling._compiled = lambda *given: compiled.append(1) or real(*given)
s = Sketch(x="f64[]")
result, = native(s.graph(y=s.apply("mul", 0, 0))).run({Key("x"): np.array(3.0)})
print(float(result), len(compiled))
"""


def started(directory, script=SCRIPT):
    environment = {**os.environ, "TIDU_CACHE_DIR": str(directory)}
    return subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def printed(process):
    out, error = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, error
    return out.strip()


@pytest.mark.check
def test_a_second_process_compiles_nothing(tmp_path):
    assert printed(started(tmp_path)) == "9.0 1"
    assert printed(started(tmp_path)) == "9.0 0"
    assert len(list(tmp_path.glob("native-*"))) == 1


@pytest.mark.check
@pytest.mark.parametrize(
    "damage", few([lambda b: b[:1000], lambda b: b[:500] + b"\0" * 9 + b[509:], lambda b: b"", lambda b: b + b"x"], 1)
)
def test_damaged_code_is_compiled_again(tmp_path, damage):
    printed(started(tmp_path))
    (file,) = tmp_path.glob("native-*")
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert printed(started(tmp_path)) == "9.0 1"
    assert file.read_bytes() == whole


@pytest.mark.check
def test_a_directory_that_cannot_be_written_keeps_nothing(tmp_path):
    taken = tmp_path / "file"
    taken.write_text("no directory")
    assert printed(started(taken)) == "9.0 1"
    assert printed(started("/proc/none")) == "9.0 1"


@pytest.mark.check
def test_processes_at_once_do_not_meet(tmp_path):
    lines = [printed(p) for p in [started(tmp_path) for _ in range(3)]]
    assert "9.0 1" in lines and {*lines} <= {"9.0 1", "9.0 0"}  # the last may start when the first is done
    assert len(list(tmp_path.glob("native-*"))) == 1
    assert printed(started(tmp_path)) == "9.0 0"


THREADS = """
import threading, time
import numpy as np
import scipy.special
import tidu_cli as tidu
from tidu_cli.adapters.native import compiling
looked_up, real = [], compiling.cached
compiling.cached = lambda name: looked_up.append(name) or time.sleep(0.2) or real(name)
f = tidu.trace(lambda x: scipy.special.erf(x) + x, "f64[]")
values = []
threads = [threading.Thread(target=lambda: values.append(tidu.evaluate(f, {"x": 0.0}, engine="native")["y"])) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
print(len(values), sum(map(float, values)), len(looked_up))
"""


@pytest.mark.check
def test_threads_that_are_the_first_to_run_it_load_it_once(tmp_path):
    assert printed(started(tmp_path, THREADS)) == "4 0.0 1"


def test_the_directory_is_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("TIDU_CACHE_DIR", str(tmp_path / "own"))
    caches.keep("a", b"123")
    assert caches.cached("a") == b"123"
    assert (tmp_path / "own" / "a").is_file()
    monkeypatch.delenv("TIDU_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert caches.cached("a") is None
    assert caches.cache_directory() == tmp_path / "tidu"


def test_other_processors_and_libraries_have_files_of_their_own(monkeypatch):
    here = ("x86_64-linux", "zen4", "+avx2")
    names = {compiling._identity(llvm, *here), compiling._identity(llvm, "x86_64-linux", "zen4", "+avx2,+fma")}
    names.add(compiling._identity(llvm, "aarch64-linux", *here[1:]))
    assert compiling._identity(llvm, *here) in names
    monkeypatch.setattr(llvmlite, "__version__", "0.0.0")
    names.add(compiling._identity(llvm, *here))
    monkeypatch.undo()
    monkeypatch.setattr(llvm, "llvm_version_info", (99, 0, 0))
    names.add(compiling._identity(llvm, *here))
    assert len(names) == 5


def test_the_file_is_of_the_source_of_the_machine(monkeypatch):
    monkeypatch.setattr(compiling.Path, "read_bytes", lambda path: path.name.encode())
    before = compiling._identity(llvm)
    for changed in ("compiling.py", "machine.py", "integers.py", "opcodes.py"):
        monkeypatch.setattr(compiling.Path, "read_bytes", lambda path, c=changed: b"new" if path.name == c else path.name.encode())
        assert compiling._identity(llvm) != before, changed
