"""A forked `tidu` does what the real one does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forking

SCRIPTS = (
    "tidu linearize samples/f.json --wrt x | tidu transpose > $TMP/t.json; tidu info < $TMP/t.json | tail -1; tidu nothing",
    "cat <(tidu show samples/f.json) && cd samples && tidu show f.json >&2",
    "tidu convert samples/f.json >&-",
    "(ulimit -f 0; tidu convert samples/f.json -o $TMP/f.json)",
    "tidu convert samples/f.json | (exec <&-; sleep 0.1); echo ${PIPESTATUS[*]}",
    "echo 'import os; os.kill(os.getpid(), 15)' > $TMP/f.py; tidu build $TMP/f.py:f -i x:f64[]; echo $?",
    "TIDU_MAX_NODES=1 tidu eval samples/f.json --set x=3; exit 7",
)


@pytest.mark.check
def test_a_forked_command_is_as_a_real_one(tmp_path: Path) -> None:
    real = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for script in SCRIPTS:
        done = [
            subprocess.run(
                ["bash", "-c", script],
                cwd=forking.ROOT,
                env=os.environ | {"PATH": path, "TMP": str(tmp_path), "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
            for path in (real, forking.path())
        ]
        assert (done[0].stdout, done[0].stderr, done[0].returncode) == (done[1].stdout, done[1].stderr, done[1].returncode), script
