"""Files while they are written: whatever goes wrong, the old file or the whole new one, and nothing beside it."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import time
from itertools import product

import pytest

from tests.cli.running import ROOT
from tests.faults.dying import NEW, OLD
from tests.tiers import few
from tidu_cli.errors import DocumentError
from tidu_cli.formats import replacing
from tidu_cli.formats.write import write_pieces

LEFT = ".tidu-0123456789abcdef.tmp"


@pytest.fixture
def target(tmp_path):
    file = tmp_path / "out.json"
    file.write_bytes(OLD)
    return file


@pytest.fixture(params=["unnamed", "named"])
def system(request, monkeypatch):
    """A system that has files without names, and one that has not."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE")
    return request.param


# --- signals, at every step


@pytest.mark.check
@pytest.mark.parametrize(
    ("name", "options"),
    few(product(["SIGKILL", "SIGINT", "SIGTERM", "SIGHUP"], [(), ("--named",), ("--new",), ("--named", "--new")]), 6),
)
def test_a_signal_at_each_step(tmp_path, name, options):
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.dying", name, tmp_path, *options], cwd=ROOT, capture_output=True, check=True
    )
    assert done.stderr == b""
    *died, last = json.loads(done.stdout)
    assert last == [0, "new", []]
    assert len(died) >= 2 * (len(NEW) + 3)  # of opening, each write, storing and replacing there is a before and an after
    assert {status for status, _, _ in died} == {getattr(signal, name)}
    holding = [holds for _, holds, _ in died]
    old = "nothing" if "--new" in options else "old"
    assert holding == [old] * holding.count(old) + ["new"] * holding.count("new")
    left = [beside for _, _, beside in died if beside]
    if name != "SIGKILL":
        assert left == []
    elif "--named" not in options:  # between the name beside the target and the target's own
        assert len(left) == 2


def test_a_second_interrupt_while_the_first_is_heeded(target, monkeypatch):
    """Python's own KeyboardInterrupt, as programs that use tidu have it."""

    def interrupted():
        yield b"a part"
        raise KeyboardInterrupt

    monkeypatch.delattr(os, "O_TMPFILE")
    with pytest.raises(KeyboardInterrupt):
        write_pieces(interrupted(), str(target))
    assert target.read_bytes() == OLD and os.listdir(target.parent) == [target.name]


def test_signals_are_as_they_were_afterwards(target, system):
    mine = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def pieces():
        seen.update((number, signal.getsignal(number)) for number in mine)
        yield b"new"

    seen = {}
    write_pieces(pieces(), str(target))
    assert {number: signal.getsignal(number) for number in mine} == mine
    assert seen[signal.SIGINT] is mine[signal.SIGINT], "a handler of the program's own stays"
    assert seen[signal.SIGTERM] is not signal.SIG_DFL


# --- what the system refuses


@pytest.mark.parametrize("failing", ["link", "replace", "fchmod", "fsync", "write"])
def test_a_refusal_at_each_step(target, monkeypatch, system, failing):
    def refuse(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    def refusing():
        yield b"a part"
        refuse()

    if failing == "write":
        pieces = refusing()
    else:
        pieces = iter(NEW)
        monkeypatch.setattr(os, failing, refuse)
    if failing == "link" and system == "named":
        write_pieces(pieces, str(target))
        assert target.read_bytes() == b"".join(NEW)
    else:
        with pytest.raises(DocumentError, match=f"^{target}: cannot write: no space left on device$"):
            write_pieces(pieces, str(target))
        assert target.read_bytes() == OLD
    assert os.listdir(target.parent) == [target.name]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_a_system_that_cannot_store(target, monkeypatch, number):
    def refuse(descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    write_pieces([b"new"], str(target))
    assert target.read_bytes() == b"new"


def test_it_is_on_the_disk_before_it_has_a_name(target, monkeypatch, system):
    steps = []

    def noted(name, function):
        def step(*args, **options):
            steps.append((name, target.read_bytes()))
            return function(*args, **options)

        return step

    for name in ("fsync", "link", "replace"):
        monkeypatch.setattr(os, name, noted(name, getattr(os, name)))
    write_pieces([b"new"], str(target))
    assert steps == [(name, OLD) for name in ("fsync", *(["link"] if system == "unnamed" else []), "replace")]


def test_a_system_whose_files_have_names(target, monkeypatch):
    """Folders on which O_TMPFILE fails, and systems without /proc."""
    opened = os.open

    def refuse(path, flags, *mode):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return opened(path, flags, *mode)

    monkeypatch.setattr(os, "open", refuse)
    write_pieces([b"new"], str(target))
    assert target.read_bytes() == b"new" and os.listdir(target.parent) == [target.name]


def test_a_system_without_proc(target, monkeypatch):
    exists = os.path.exists
    monkeypatch.setattr(os.path, "exists", lambda path: not str(path).startswith("/proc/") and exists(path))
    before = os.listdir("/proc/self/fd")
    write_pieces([b"new"], str(target))
    assert target.read_bytes() == b"new" and os.listdir(target.parent) == [target.name]
    assert len(os.listdir("/proc/self/fd")) == len(before)


# --- owners


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o777])
def test_permissions_and_owner_are_kept(target, system, mode):
    target.chmod(mode)
    owner = (4321, 4322) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(target, *owner)
    write_pieces([b"new"], str(target))
    status = target.stat()
    assert (stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid), target.read_bytes()) == (mode, owner, b"new")


def test_an_owner_that_the_system_does_not_allow(target, monkeypatch):
    def refuse(*args):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refuse)
    target.chmod(0o640)
    write_pieces([b"new"], str(target))
    assert stat.S_IMODE(target.stat().st_mode) == 0o640 and target.read_bytes() == b"new"


def test_a_new_file_follows_the_umask(tmp_path, system):
    before = os.umask(0o027)
    try:
        write_pieces([b"new"], str(tmp_path / "new.json"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new.json").stat().st_mode) == 0o640


# --- what killed writers have left


def age(path, seconds):
    os.utime(path, (time.time() - seconds,) * 2)


def test_what_killed_writers_have_left_goes_with_the_next_write(target):
    left = target.parent / LEFT
    left.write_bytes(b"a part")
    write_pieces([b"1"], str(target))
    assert left.exists(), "too new: its writer may be about to lock it"
    age(left, 60)
    write_pieces([b"2"], str(target))
    assert os.listdir(target.parent) == [target.name]


def test_what_a_living_writer_holds_stays(target):
    left = target.parent / LEFT
    with left.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        age(left, 3600)
        write_pieces([b"1"], str(target))
        assert left.exists()
    write_pieces([b"2"], str(target))
    assert not left.exists()


def test_a_writer_holds_its_own(target, system):
    """While it takes long to write, others sweep."""

    def sweep():
        for path in target.parent.glob(".tidu-*"):
            age(path, 3600)
        replacing._sweep(str(target.parent))

    def pieces():
        sweep()
        yield b"new"

    write_pieces(pieces(), str(target))
    assert target.read_bytes() == b"new" and os.listdir(target.parent) == [target.name]


@pytest.mark.parametrize(
    "name", [".tidu-0123.tmp", "tidu-0123456789abcdef.tmp", ".tidu-0123456789abcdef.tmp.json", ".tidu-0123456789ABCDEF.tmp"]
)
def test_files_of_other_names_stay(target, name):
    other = target.parent / name
    other.write_bytes(b"mine")
    age(other, 3600)
    write_pieces([b"new"], str(target))
    assert other.read_bytes() == b"mine"


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.symlink("out.json", path)], ids=["folder", "fifo", "link"])
def test_what_is_no_file_stays(target, make):
    make(target.parent / LEFT)
    write_pieces([b"new"], str(target))
    assert sorted(os.listdir(target.parent)) == [LEFT, target.name]


def test_a_folder_that_cannot_be_listed(target, monkeypatch):
    """The folder cannot be listed: there may be something left, and the write goes on."""

    def refuse(path):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    write_pieces([b"new"], str(target))
    assert target.read_bytes() == b"new"
