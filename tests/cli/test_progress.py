"""The progress bar: shown at a terminal only, after a while, and gone in the end."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys

import pytest

from tests.cli.running import ENVIRONMENT, ROOT, document, graph
from tidu_cli.cli.messages import drawn
from tidu_cli.watching import CHUNK, listening, watch

IMPATIENT = (
    "import sys; import tidu_cli.cli.messages as p; p.AFTER, p._EVERY = 0.0, 0.001; sys.setswitchinterval(1e-4)\n"
    "from tidu_cli.__main__ import main; sys.argv[0] = 'tidu'; main()"
)


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    file = tmp_path_factory.mktemp("progress") / "big.json"
    file.write_bytes(document(graph([("neg", k) for k in range(40_000)], outputs=[("y", 40_000)])))
    return str(file)


def at_terminal(*args, interrupted=False, **variables):
    """Status, stdout, and what a terminal of 60 columns shows of stderr; interrupted, if so, once it shows anything."""
    ours, theirs = pty.openpty()
    subprocess.run(["stty", "columns", "60"], stdin=theirs, check=True)
    environment = {**ENVIRONMENT, "TERM": "xterm", **variables}
    with subprocess.Popen(
        [sys.executable, "-c", IMPATIENT, *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment,
        cwd=ROOT,
    ) as child:
        os.close(theirs)
        shown = b""
        if interrupted:
            shown = os.read(ours, 65536)
            child.send_signal(signal.SIGINT)
        out = child.stdout.read()
        while True:
            try:
                read = os.read(ours, 65536)
            except OSError:
                break
            if not read:
                break
            shown += read
    os.close(ours)
    return child.returncode, out, shown.decode()


def test_it_is_drawn_and_erased(big):
    status, out, shown = at_terminal("convert", big, "-o", os.devnull)
    assert (status, out) == (0, b"")
    frames = shown.split("\r\x1b[K")
    assert any(frame.startswith(("reading ", "writing ")) and " % [" in frame for frame in frames)
    assert frames[-1] == "", "it is erased"
    assert max(map(len, frames)) < 60


def test_an_interrupt_erases_it(big):
    status, out, shown = at_terminal("convert", big, interrupted=True)
    assert (status, out) == (-signal.SIGINT, b"")
    first, *_, last = shown.split("\r\x1b[K")
    assert (first, last) == ("", "") and "parsing" in shown


def test_an_error_comes_after_it_is_erased(big):
    status, _, shown = at_terminal("linearize", big, "--wrt", "z")
    assert status == 1
    assert shown.split("\r\x1b[K")[-1].endswith("no graph has an input 'z' (inputs: x)\r\n")


@pytest.mark.parametrize(("args", "variables"), [(("--quiet",), {}), ((), {"TERM": "dumb"})])
def test_who_wants_none_gets_none(big, args, variables):
    assert at_terminal(*args, "convert", big, "-o", os.devnull, **variables) == (0, b"", "")


def test_short_work_shows_nothing():
    ours, theirs = pty.openpty()
    done = subprocess.run(
        ["tidu", "convert", "samples/f.json"], stdout=subprocess.PIPE, stderr=theirs, cwd=ROOT, env=ENVIRONMENT, check=True
    )
    os.close(theirs)
    assert json.loads(done.stdout)
    with pytest.raises(OSError, match="Input/output"):
        os.read(ours, 1)
    os.close(ours)


@pytest.mark.parametrize("columns", [1, 10, 20, 40, 80, 300])
@pytest.mark.parametrize(("done", "total"), [(0, 7), (3, 7), (7, 7), (5, None)])
def test_it_fits(columns, done, total):
    assert len(drawn("materializing", done, total, 4000.0, columns)) < max(columns, 2)


def test_it_tells_percent_and_time_left():
    assert drawn("linearizing", 25, 100, 30.0, 50) == "linearizing  25 % [####...............] 1:30 left"


class Recorder:
    def __init__(self):
        self.events = []

    def begin(self, stage, total):
        self.events.append((stage, total))

    def advance(self, n):
        self.events.append(n)


def test_watched_loops_are_told_of_and_unchanged():
    items, recorder = list(range(2 * CHUNK + 3)), Recorder()
    assert watch("counting", len(items))(items) is items
    with listening(recorder):
        assert list(watch("counting", len(items))(items)) == items
    assert recorder.events == [("counting", len(items)), CHUNK, CHUNK, 3]
    assert watch("counting")(items) is items, "nobody listens any more"


def test_watched_loops_see_what_they_do_themselves():
    values = [1]
    with listening(Recorder()):
        for value in watch("doubling")(values[k] for k in range(CHUNK + 2)):
            values.append(value + 1)
    assert values[-1] == CHUNK + 3
