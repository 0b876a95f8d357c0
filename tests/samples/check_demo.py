"""What `make demo` runs: it stops with an error where a result is wrong, and shows the results that it has."""

from __future__ import annotations

import os
import re
import subprocess

from tests.samples.running import ENVIRONMENT, SAMPLES


def test_demo(tmp_path):
    (tmp_path / "samples").symlink_to(SAMPLES)
    done = subprocess.run(["sh", tmp_path / "samples" / "demo.sh"], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[3] == '{"x@-1": 0.0, "y@-1": 9.0}'
    assert re.search(
        r"converged after \d+ iterations .*: cost 37\.7589, gradient norm \S+\n.*\n\{\"right\": 562\}$", done.stdout, re.M
    )
    assert re.search(r"^\d+ steps, loss 37\.75\d\d, gradient norm \de-0\d: 56\d of 569 classified correctly$", done.stdout, re.M)


def test_a_wrong_result_stops_it(tmp_path):
    (tmp_path / "tidu").write_text('#!/bin/sh\necho \'{"x@-1": 0.0, "y@-1": 9.1}\'\n')
    (tmp_path / "tidu").chmod(0o755)
    environment = ENVIRONMENT | {"PATH": f"{tmp_path}{os.pathsep}{ENVIRONMENT['PATH']}"}
    done = subprocess.run(["sh", SAMPLES / "demo.sh"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "demo: error: expected" in done.stderr
