"""What packages print goes to stderr, whether it comes from Python, from C or from child processes."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.cli.running import document, graph
from tests.plugins.packages import GOOD, environment, tidu, write

MODULE = (
    GOOD.format(op="mine")
    + """
import ctypes, subprocess, sys
from tidu_cli.rules.families import changed

C = ctypes.CDLL(None)

def loud(x):
    print("Python")
    C.puts(b"C"), C.fflush(None)
    subprocess.run(["echo", "child"], check=True)
    C.puts(b"C, at the end")
    return x

P = changed(P, kernel=lambda *_: loud)
"""
)
WORDS = {"Python", "C", "child", "C, at the end"}
SOURCE = document(graph([("mine", 0)], outputs=[("y", 1)]))
EVAL = ("eval", "-", "--set", "x=3")


@pytest.mark.parametrize("out", [(), ("-o", "-"), ("-o", "/dev/stdout"), ("-o", "/dev/fd/1")])
def test_stdout_has_the_data_alone_and_stderr_the_words(tmp_path, out):
    write(tmp_path, "ann", {"mine": "ann:P"}, MODULE)
    done = tidu(tmp_path, *EVAL, *out, input=SOURCE)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"y": 3.0})
    assert set(done.stderr.decode().splitlines()) == WORDS


@pytest.mark.check
@pytest.mark.parametrize("unbuffered", ["", pytest.param("1", marks=pytest.mark.campaign)])
def test_files_and_closed_descriptors(tmp_path, unbuffered):
    write(tmp_path, "ann", {"mine": "ann:P"}, MODULE)
    (tmp_path / "in.json").write_bytes(SOURCE)
    options = {"cwd": tmp_path, "env": {**environment(tmp_path), "PYTHONUNBUFFERED": unbuffered}, "check": False}

    def line(command: str) -> int:
        return subprocess.run(["sh", "-c", command], **options).returncode

    told = "tidu eval in.json --set x=3"
    (tmp_path / "link.json").symlink_to("/dev/stdout")
    by_name = [f"-o {name} >out 2>err" for name in ("/dev/stdout", "/dev/./stdout", "link.json")]
    for redirected in (">out 2>err", ">>out 2>&-", ">out 2>err <&-", *by_name):
        (tmp_path / "out").write_text("")
        (tmp_path / "err").write_text("before\n" * 9)  # as a file, stderr is nothing that -o might write over
        assert line(f"{told} {redirected}") == 0, redirected
        assert json.loads((tmp_path / "out").read_text()) == {"y": 3.0}, redirected
    assert line(f"{told} 2>err >/dev/full") == 1
    assert "tidu eval: error: stdout: cannot write: no space left on device" in (tmp_path / "err").read_text()
    assert line(f"{told} 2>err >&-") == 1 and "stdout: is closed" in (tmp_path / "err").read_text()
