"""Files from anyone: none runs code, and none makes more than it holds."""

from __future__ import annotations

import io
import os
import pickle
import zipfile

import numpy as np
import pytest
from numpy.lib import format as npy

from tests.cli.running import F, document, graph, process, shell
from tests.waiting import LIMIT

INPUT = document(graph([("neg", 0)], inputs=[("x", "f64[3]")], outputs=[("y", 1)]))


class Payload:
    """What runs a command as it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


def array_of_objects(mark) -> bytes:
    file = io.BytesIO()
    npy.write_array(file, np.array([Payload(mark)] * 3, dtype=object), allow_pickle=True)
    return file.getvalue()


def archive(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("x.npy", data)
    return file.getvalue()


def header(text: str, data: bytes = b"") -> bytes:
    """A .npy file with this header, whatever it says."""
    padded = text.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode() + data


def given(folder, data):
    """The ways in which values are given: what `eval` makes of each."""
    (folder / "x.npy").write_bytes(data)
    (folder / "x.npz").write_bytes(archive(data))
    yield process("eval", "--set", f"x=@{folder / 'x.npy'}", input=INPUT)
    yield process("eval", "--inputs", folder / "x.npz", input=INPUT)


def test_the_payload_would_run(tmp_path):
    """Else the next test would show nothing."""
    mark = tmp_path / "ran"
    np.load(io.BytesIO(array_of_objects(mark)), allow_pickle=True)
    assert mark.exists()


def test_arrays_of_objects_are_refused_unread(tmp_path):
    mark = tmp_path / "ran"
    for done in given(tmp_path, array_of_objects(mark)):
        (line,) = done.stderr.decode().splitlines()
        assert done.returncode == 1 and line.startswith("tidu eval: error: ") and "Python's objects" in line
    assert not mark.exists()


@pytest.mark.check
@pytest.mark.parametrize("suffix", ["npy", "npz", "json", "msgpack"])
def test_pickles_are_no_values_and_no_documents(tmp_path, suffix):
    mark, file = tmp_path / "ran", tmp_path / f"x.{suffix}"
    file.write_bytes(pickle.dumps(Payload(mark)))
    for args in (["eval", F, "--set", f"x=@{file}"], ["eval", F, "--inputs", file], ["check", file], ["resolve", "--ops", file, F]):
        done = process(*args)
        assert done.returncode == 1 and len(done.stderr.decode().splitlines()) == 1, args
    assert not mark.exists()


CALL = "__import__('os').system('touch {mark}')"


@pytest.mark.check
@pytest.mark.parametrize(
    "text",
    [
        "{{'descr': '<f8', 'fortran_order': False, 'shape': (" + CALL + ",)}}",
        "{{'descr': " + CALL + ", 'fortran_order': False, 'shape': (3,)}}",
        "{{'descr': '|O', 'fortran_order': False, 'shape': (3,)}}",
        "{{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (3,)}}",
        "{{'descr': '<f8', 'fortran_order': False, 'shape': (-3,)}}",
        "{{'descr': '|V8', 'fortran_order': False, 'shape': (3,)}}",
    ],
)
def test_headers_are_data(tmp_path, text):
    mark = tmp_path / "ran"
    for done in given(tmp_path, header(text.format(mark=mark), bytes(24))):
        assert done.returncode == 1 and len(done.stderr.decode().splitlines()) == 1
        assert done.stdout == b"" and b"bug" not in done.stderr
    assert not mark.exists()


@pytest.mark.check
@pytest.mark.parametrize("shape", ["(10**15,)", f"({2**33},)", f"({2**62},)", f"({2**31}, {2**31})", f"({2**70},)"])
def test_what_a_header_promises_is_not_made(tmp_path, shape):
    """In 2 GiB: of an array of 64 GiB and more, in a file that holds three numbers."""
    data = header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}", bytes(24))
    (tmp_path / "x.npy").write_bytes(data)
    (tmp_path / "x.npz").write_bytes(archive(data))
    (tmp_path / "f.json").write_bytes(INPUT)
    for value in ("--set x=@x.npy", "--inputs x.npz"):
        done = shell(f"ulimit -v {2**21}; cd {tmp_path}; OPENBLAS_NUM_THREADS=1 tidu eval f.json {value} || exit $?", timeout=LIMIT)
        assert done.returncode == 1 and done.stdout == ""
        (line,) = done.stderr.splitlines()
        assert line.startswith("tidu eval: error: ") and "bug" not in line


@pytest.mark.parametrize(
    "head", [b"\xdf\xff\xff\xff\xff", b"\x81\xa4tidu\xdd\xff\xff\xff\xff", b"\x81\xa6graphs\xc6\xff\xff\xff\xff"]
)
def test_what_msgpack_promises_is_not_made(tmp_path, head):
    """A map, an array and bytes of 4 Gi parts each, of which nothing comes."""
    (tmp_path / "x.msgpack").write_bytes(head + b"\xa1a")
    done = shell(f"ulimit -v {2**21}; tidu check {tmp_path / 'x.msgpack'} || exit $?", timeout=LIMIT)
    assert done.returncode == 1 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("tidu check: error: ") and "bug" not in line


def test_a_document_names_no_file_and_no_program(tmp_path):
    """In names, meta and attrs what looks like a path, an option or a command is text."""
    mark = tmp_path / "ran"
    text = f"@{mark};$(touch {mark})`touch {mark}`|touch {mark}"
    data = document(
        graph([("neg", 0)], inputs=[(text, "f64[]")], outputs=[("y", 1)], name=text), meta={"include": f"file://{mark}"}
    )
    for args in (["check", "--all"], ["info"], ["convert"], ["dot"], ["dot", "--format", "dot"], ["view", "-o", "-"]):
        process(*args, input=data)
    assert not mark.exists()
