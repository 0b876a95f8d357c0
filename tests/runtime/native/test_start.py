"""What the engine takes before a first result: to load its code in a process, and to compile it once on a machine."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers import few

ROOT = Path(__file__).parents[3]
TURNS = 8
"""Turns at most, until the least times of all keep to the bounds: what else is at work at the time slows code down, LLVM's most."""

LOADED, COMPILED = 2, 6
"""The processor's time with the engine, at most, over that with NumPy, which is 0.15 s and more; 1.2 and 3 were measured."""

RUNS = [(["--set", "x=0.5"], b'{"y": 0.5}\n'), (["--set", "x=1,2", "--batch", "x=0"], b'{"y": [2.0, 8.0]}\n')]


def seconds(engine, directory, arguments, printed):
    """The processor's time of a command."""
    command = [Path(sys.executable).with_name("tidu"), "eval", "samples/f.json", "--engine", engine, *arguments]
    environment = {**os.environ, "TIDU_CACHE_DIR": str(directory)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout.read() == printed
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


@pytest.mark.check
@pytest.mark.parametrize("run", few(RUNS, 1))
def test_code_is_compiled_once_and_then_loaded(tmp_path, run):
    least = dict.fromkeys(("numpy", "compiled", "loaded"), math.inf)
    for turn in range(TURNS):
        places = {"numpy": tmp_path, "compiled": tmp_path / str(turn), "loaded": tmp_path / str(turn)}
        for name, place in places.items():
            least[name] = min(least[name], seconds("numpy" if name == "numpy" else "native", place, *run))
        if least["loaded"] < LOADED * least["numpy"] and least["compiled"] < COMPILED * least["numpy"]:
            return
    pytest.fail(f"processor time, the least of {TURNS} turns: {least}")
