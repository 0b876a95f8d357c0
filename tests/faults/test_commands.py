"""Commands that are killed, interrupted, cut off or refused: one line or none, and files as they were or whole."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.running import ENVIRONMENT, ROOT, F, document, graph, process, shell
from tests.waiting import LIMIT, until


def chain(n, name):
    return document(graph([("neg", k) for k in range(n)], outputs=[(name, n)], name=name))


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Two documents, and what `convert` makes of each."""
    folder = tmp_path_factory.mktemp("sources")
    pairs = []
    for name in ("one", "two"):
        source = folder / f"{name}.json"
        source.write_bytes(chain(3000, name))
        pairs.append((source, process("convert", source).stdout))
    return pairs


def started(*args, **options):
    options = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "cwd": ROOT,
        "env": ENVIRONMENT,
    } | options
    return subprocess.Popen(list(map(str, args)), **options)


def signalled(child, number, seconds):
    """Status, stdout and stderr of a process that gets a signal after so long."""
    time.sleep(seconds)
    child.send_signal(number)
    out, err = child.communicate(timeout=LIMIT)
    return child.returncode, out, err


# --- killed and interrupted


def check_endings(folder, sources, number, n):
    """Let commands end by a signal, at n moments; give how many there were of each status, and of files left."""
    target, counts = folder / "out.json", Counter()
    (_, old), (source, new) = sources
    choose = random.Random(f"{number} {n}")
    start = time.monotonic()
    process("convert", source)
    taken = 1.2 * (time.monotonic() - start)
    for _ in range(n):
        target.write_bytes(old)
        child = started("tidu", "convert", source, "-o", target)
        status, out, err = signalled(child, number, choose.uniform(0, taken))
        assert out == b""
        assert status in (0, -number) or err, "Python's own start ends with 1 if it is interrupted"
        assert target.read_bytes() in ((new,) if status == 0 else (old, new))
        left = [path for path in folder.iterdir() if path != target]
        for path in left:
            os.utime(path, (0, 0))
        assert not left or number == signal.SIGKILL
        assert not re.search(rb"tidu_cli/(?!__)", err), "a traceback of what comes after tidu's first lines"
        counts.update([status, *(["left"] if left else []), *(["Python's traceback"] if err else [])])
    assert process("convert", source, "-o", target).returncode == 0
    assert os.listdir(folder) == [target.name]
    return counts


@pytest.mark.check
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_ends_at_a_few_moments(tmp_path, sources, number):
    check_endings(tmp_path, sources, number, 4)


@pytest.mark.campaign
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ends_at_500_moments(tmp_path, sources, number):
    counts = check_endings(tmp_path, sources, number, 500)
    print(f"{number.name}: {dict(counts)}")
    assert counts[-number] > 100, "too late to hit"


INTERRUPTED_AT = """
import os, signal, sys
at = sys.argv.pop(1)
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == at:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
import tidu_cli.__main__
tidu_cli.__main__.main()
"""


@pytest.mark.parametrize(
    "module",
    ["tidu_cli.cli.main", "click", "tidu_cli.cli.commands.linearize", "tidu_cli.formats.read", "tidu_cli.transforms.linearize"],
)
def test_an_interrupt_while_a_module_is_imported(module):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT, module, "linearize", F, "--wrt", "x"], capture_output=True, cwd=ROOT, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


def test_nothing_is_imported_before_interrupts_are_minded():
    """Of what comes before it an interrupt may print a traceback; Python's own start is not ours."""
    code = "import sys; before = set(sys.modules); import tidu_cli.__main__; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=True)
    assert done.stdout.split() == [b"tidu_cli", b"tidu_cli.__main__"]


def test_the_program_begins_there():
    """By both ways of calling it."""
    assert 'tidu = "tidu_cli.__main__:main"' in (ROOT / "pyproject.toml").read_text()
    done = subprocess.run([sys.executable, "-m", "tidu_cli", "eval", F, "--set", "x=3"], capture_output=True, cwd=ROOT, check=True)
    assert (done.stdout, done.stderr) == (b'{"y": 18.0}\n', b"")


def test_what_runs_in_the_background_of_a_script_is_not_interrupted():
    """A shell without job control has its background ignore interrupts, and a command leaves that so."""
    often = "for k in 1 2 3 4 5 6 7 8 9; do sleep 0.02; kill -INT $child 2>/dev/null || true; done"
    done = shell(f"tidu eval {F} --set x=3 & child=$!; {often}; wait $child")
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"y": 18.0}\n', "")


def test_shells_say_130():
    done = shell(f"python -c '{INTERRUPTED_AT}' click --help || echo $?")
    assert (done.stdout, done.stderr) == ("130\n", "")


# --- several writers


@pytest.mark.check
@pytest.mark.parametrize("n", [4, pytest.param(200, marks=pytest.mark.campaign)])
def test_two_writers_of_one_file(tmp_path, sources, n):
    target = tmp_path / "out.json"
    seen = set()
    for _ in range(n // 2):
        children = [started("tidu", "convert", source, "-o", target) for source, _ in sources]
        for child in children:
            _, err = child.communicate(timeout=LIMIT)
            assert (child.returncode, err) == (0, b"")
        seen.add(target.read_bytes())
        assert os.listdir(tmp_path) == [target.name]
    assert seen <= {made for _, made in sources}


# --- a disk that is full, quotas, and what may not be written


def limited(size, *args):
    """Run `tidu` with files limited to so many bytes, as a quota limits them."""
    limit = f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))"
    return execute(f"import os, resource, sys; {limit}; os.execvp('tidu', ['tidu', *sys.argv[1:]])", *args)


def execute(code, *args):
    """Run Python code that becomes `tidu`."""
    command = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.run(command, capture_output=True, cwd=ROOT, env=ENVIRONMENT, check=False)


@pytest.mark.check
@pytest.mark.parametrize("size", [0, 1, 4096, 65536, 100_000])
def test_a_quota(tmp_path, sources, size):
    target = tmp_path / "out.json"
    (_, old), (source, new) = sources
    target.write_bytes(old)
    assert size < len(new)
    done = limited(size, "convert", source, "-o", target)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == f"tidu convert: error: {target}: cannot write: file too large\n"
    assert target.read_bytes() == old and os.listdir(tmp_path) == [target.name]


@pytest.mark.parametrize(
    "args", [("convert", F), ("ops",), ("--help",), ("eval", F, "--set", "x=3"), ("check", F), ("dot", F), ("schema",), ("info", F)]
)
def test_a_full_device(args):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(["tidu", *args], stdout=full, stderr=subprocess.PIPE, cwd=ROOT, env=ENVIRONMENT, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("tidu") and "error: " in line and line.lower().endswith("no space left on device")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("only root may mount file systems")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.campaign
def test_a_full_disk(small_disk, sources):
    target = small_disk / "out.json"
    target.write_bytes(b"{} before")
    done = process("convert", sources[0][0], "-o", target)
    assert (done.returncode, done.stderr.decode()) == (1, f"tidu convert: error: {target}: cannot write: no space left on device\n")
    assert target.read_bytes() == b"{} before" and os.listdir(small_disk) == [target.name]


@pytest.mark.campaign
def test_a_read_only_file_system(small_disk):
    target = small_disk / "out.json"
    target.write_bytes(b"{} before")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    for path in (target, small_disk / "new.json"):
        done = process("convert", F, "-o", path)
        assert (done.returncode, done.stderr.decode()) == (1, f"tidu convert: error: {path}: cannot write: read-only file system\n")
    assert os.listdir(small_disk) == [target.name]


AS_ANYONE = """
import ctypes, os, sys
for capability in (1, 2):  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: what lets root read and write everything
    if os.geteuid() == 0 and ctypes.CDLL(None, use_errno=True).prctl(24, capability, 0, 0, 0):
        sys.exit(os.strerror(ctypes.get_errno()))
os.execvp("tidu", ["tidu", *sys.argv[1:]])
"""


def as_anyone(*args):
    """Run `tidu` as who may not read and write everything, as root may."""
    return execute(AS_ANYONE, *args)


def test_what_may_not_be_written(tmp_path):
    target, folder = tmp_path / "out.json", tmp_path / "folder"
    target.write_bytes(b"{} before")
    target.chmod(0o400)
    folder.mkdir(0o500)
    (folder / "out.json").write_bytes(b"{} before")
    for path in (target, folder / "new.json", folder / "out.json"):
        done = as_anyone("convert", F, "-o", path)
        assert (done.returncode, done.stderr.decode()) == (1, f"tidu convert: error: {path}: cannot write: permission denied\n")
    assert target.read_bytes() == (folder / "out.json").read_bytes() == b"{} before"
    assert (os.listdir(folder), sorted(os.listdir(tmp_path))) == (["out.json"], ["folder", "out.json"])


def test_what_may_not_be_read(tmp_path):
    source = tmp_path / "in.json"
    source.write_bytes(Path(F).read_bytes())
    source.chmod(0o200)
    done = as_anyone("check", source)
    assert (done.returncode, done.stderr.decode()) == (1, f"tidu check: error: {source}: cannot read: permission denied\n")


# --- pipes


@pytest.mark.parametrize(
    ("line", "status", "message"),
    [
        ("tidu convert <&-", 1, "tidu convert: error: stdin: is closed\n"),
        (f"tidu convert {F} >&-", 1, "tidu convert: error: stdout: is closed\n"),
        (f"tidu eval {F} --set x=3 >&-", 1, "tidu eval: error: stdout: is closed\n"),
        (f"tidu linearize {F} --wrt z 2>&-", 1, ""),
        ("tidu --version >&-", 0, ""),
        (f"tidu convert {F} -o /dev/null <&- >&- 2>&-", 0, ""),
    ],
)  # fmt: skip
def test_closed_from_the_start(line, status, message):
    done = shell(f"{line} || exit $?")
    assert (done.returncode, done.stdout, done.stderr) == (status, "", message)


@pytest.mark.check
@pytest.mark.parametrize("form", ["json", "msgpack"])
def test_a_writer_that_dies(tmp_path, sources, form):
    """What it has written so far is no document, and is not taken for one."""
    data = process("convert", sources[0][0], "--format", form).stdout
    target = tmp_path / "out.json"
    target.write_bytes(b"{} before")
    for size in (0, 1, len(data) // 2, len(data) - 3):
        copying = f"sys.stdout.buffer.write(sys.stdin.buffer.read({size})); sys.stdout.flush(); time.sleep(6000)"
        writer = started(sys.executable, "-c", f"import sys, time; {copying}", stdin=subprocess.PIPE)
        reader = started("tidu", "convert", "-o", target, stdin=writer.stdout)
        writer.stdout.close()
        writer.stdin.write(data[:size])
        writer.stdin.close()
        time.sleep(0.1)
        writer.kill()
        writer.wait()
        _, err = reader.communicate(timeout=LIMIT)
        (line,) = err.decode().splitlines()
        assert reader.returncode == 1 and line.startswith("tidu convert: error: stdin: ")
        assert target.read_bytes() == b"{} before" and os.listdir(tmp_path) == [target.name]
        writer.stderr.close()


def test_a_parent_that_dies(tmp_path):
    """The command goes on without it, and its result is whole."""
    target = tmp_path / "out.json"
    parent = f"import subprocess, os; subprocess.Popen(['tidu', 'convert', {F!r}, '-o', {str(target)!r}]); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", parent], cwd=ROOT, env=ENVIRONMENT, check=False)
    until(target.exists)
    assert target.read_bytes() == Path(F).read_bytes()


# --- streams without an end

ROOM = 4 * 2**30


def bounded(line):
    """Run a line of bash in 4 GiB: what reads without an end comes to an end of these."""
    return shell(f"ulimit -v {ROOM // 1024}; {line} || exit $?", timeout=LIMIT)


@pytest.mark.check
@pytest.mark.parametrize(
    "line",
    [
        "tidu check /dev/zero",
        "tidu check < /dev/zero",
        "tidu linearize /dev/zero --wrt x",
        "tidu check /dev/urandom",
        "set +o pipefail; yes | tidu check",
        "set +o pipefail; { printf '{\"tidu\": 1, '; cat /dev/zero; } | tidu check",
        "set +o pipefail; { printf '  \\n'; cat /dev/zero; } | tidu check",
        f"tidu eval {F} --set x=@/dev/zero",
        f"tidu eval {F} --inputs /dev/zero",
        "tidu check --ops /dev/zero",
        f"tidu resolve --ops /dev/zero {F}",
        "tidu diff /dev/zero /dev/zero",
    ],
)
def test_streams_without_an_end(line):
    done = bounded(line)
    assert done.returncode in (1, 2) and done.stdout == ""
    (message,) = done.stderr.splitlines()
    assert message.startswith("tidu ") and ": error: " in message
