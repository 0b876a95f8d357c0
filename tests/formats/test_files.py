"""Files and pipes: all or nothing, permissions kept, links followed, devices written to."""

import io
import os
import subprocess
import sys
import threading
from array import array
from contextlib import suppress

import pytest

from tidu_cli.errors import DocumentError
from tidu_cli.formats.files import read_bytes
from tidu_cli.formats.write import AT_ONCE, write_pieces


class Standard:
    """A stand-in for sys.stdin or sys.stdout."""

    def __init__(self, data=b""):
        self.buffer = io.BytesIO(data)


def test_reads_files_and_stdin(tmp_path, monkeypatch):
    (tmp_path / "f").write_bytes(b"abc")
    assert read_bytes(str(tmp_path / "f")) == b"abc"
    monkeypatch.setattr(sys, "stdin", Standard(b"def"))
    assert read_bytes("-") == b"def"


def test_what_cannot_be_read_is_told_in_one_line(tmp_path, monkeypatch):
    (tmp_path / "empty").touch()
    for name, reason in [("absent", "no such file"), ("", "is a directory"), ("empty", "empty; expected a document")]:
        path = str(tmp_path / name)
        with pytest.raises(DocumentError, match=reason) as raised:
            read_bytes(path)
        assert str(raised.value).startswith(f"{path}: ")
    monkeypatch.setattr(sys, "stdin", Standard())
    with pytest.raises(DocumentError, match="stdin: empty; expected a document in JSON or msgpack"):
        read_bytes("-")
    with pytest.raises(DocumentError, match="not a path"):
        read_bytes("a\0b")


class Unbuffered(io.RawIOBase):
    """As sys.stdout.buffer is with PYTHONUNBUFFERED: each write is a call of the system, which may take a part only."""

    def __init__(self, most):
        self.most, self.written = most, []

    def write(self, data):
        self.written.append(bytes(data[: self.most]))
        return len(self.written[-1])


@pytest.mark.parametrize("most", [1, 7, AT_ONCE, 2**20])
def test_writes_all_to_what_takes_a_part(most, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Standard())
    sys.stdout.buffer = Unbuffered(most)
    pieces = [b"abc", b"", memoryview(b"d" * 50), b"e" * 1000, memoryview(array("i", range(9)))]
    expected = b"".join(pieces)
    assert write_pieces(pieces, None) == len(expected)
    assert b"".join(sys.stdout.buffer.written) == expected


@pytest.mark.parametrize(("size", "n", "calls"), [(100, 100, 1), (AT_ONCE, 3, 3), (AT_ONCE // 4, 9, 3)])
def test_small_pieces_are_written_at_once(size, n, calls, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Standard())
    sys.stdout.buffer = Unbuffered(2**30)
    write_pieces((b"x" * size for _ in range(n)), None)
    assert len(sys.stdout.buffer.written) == calls


@pytest.mark.parametrize("path", [None, "-", "/dev/stdout"])
def test_writes_to_stdout(path, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Standard())
    write_pieces([b"abc"], path)
    assert sys.stdout.buffer.getvalue() == b"abc"


def test_a_new_file_follows_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_pieces([b"abc"], str(tmp_path / "f"))
    finally:
        os.umask(before)
    assert (tmp_path / "f").read_bytes() == b"abc"
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o640


def test_a_replaced_file_keeps_its_permissions(tmp_path):
    target = tmp_path / "f"
    target.write_bytes(b"old")
    target.chmod(0o604)
    write_pieces([b"new"], str(target))
    assert target.read_bytes() == b"new" and target.stat().st_mode & 0o777 == 0o604
    assert os.listdir(tmp_path) == ["f"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("sub/target")
    for data in (b"one", b"two"):  # first the target does not exist yet
        write_pieces([data], str(tmp_path / "link"))
        assert (tmp_path / "link").is_symlink() and (tmp_path / "sub" / "target").read_bytes() == data
    assert os.listdir(tmp_path / "sub") == ["target"]


def test_what_cannot_be_written_is_told_in_one_line(tmp_path):
    for path, reason in [("", "is a directory"), ("absent/f", "no such directory")]:
        with pytest.raises(DocumentError, match=reason):
            write_pieces([b"abc"], str(tmp_path / path))
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(DocumentError, match="loop"):
        write_pieces([b"abc"], str(tmp_path / "loop"))


def test_devices_and_pipes_are_written_to(tmp_path):
    write_pieces([b"abc"], "/dev/null")
    fifo = str(tmp_path / "fifo")
    os.mkfifo(fifo)
    writer = threading.Thread(target=write_pieces, args=([b"through"], fifo))
    writer.start()
    with open(fifo, "rb") as file:
        assert file.read() == b"through"
    writer.join()
    assert os.listdir(tmp_path) == ["fifo"]


def test_a_full_device_is_told_in_one_line():
    """In a process that may not change /dev: a fault would put a file in the place of the device, which all programs share."""
    child = os.fork()
    if child == 0:
        status = 2
        try:
            with suppress(PermissionError):
                os.geteuid() or os.setuid(65534)
            write_pieces([b"abc"], "/dev/full")
        except DocumentError as error:
            status = str(error) != "/dev/full: cannot write: no space left on device"
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_stdout_by_name_works_wherever_it_goes(tmp_path):
    program = "from tidu_cli.formats.write import write_pieces; write_pieces([b'abc'], '/dev/stdout'); print('def')"
    with open(tmp_path / "out", "wb") as out:
        subprocess.run([sys.executable, "-c", program], stdout=out, check=True)
    assert (tmp_path / "out").read_bytes() == b"abcdef\n"
