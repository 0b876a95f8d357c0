"""Compressed files: read by their first bytes, bounded, and refused in one line where they are damaged."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zlib

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.cli.running import ROOT, F, invoke, succeed
from tests.peaks import peak
from tests.programs import needs
from tests.tiers import campaign, examples
from tidu_cli.errors import DocumentError, LimitError
from tidu_cli.formats import compression
from tidu_cli.formats.compression import CompressionError, packed
from tidu_cli.formats.files import Source, read_bytes, reading
from tidu_cli.formats.read import parse
from tidu_cli.formats.write import write_pieces
from tidu_cli.limits import Limits, limited

PLAIN = (ROOT / "samples" / "f.json").read_bytes()


zstd = pytest.param("zstd", marks=() if sys.version_info >= (3, 14) else needs("zstandard"))
BOTH = ["gzip", zstd]
SUFFIX = {"gzip": ".gz", "zstd": ".zst"}


def compressed(data: bytes, kind: str) -> bytes:
    return b"".join(packed([data], kind))


@pytest.mark.parametrize("kind", BOTH)
@settings(max_examples=examples(60))
@given(parts=st.lists(st.binary(max_size=300), max_size=5), sizes=st.lists(st.integers(0, 400), max_size=9))
@example(parts=[bytes(range(20))], sizes=[7, 0, 3])  # what is left is read on where nothing is asked for
def test_what_is_read_is_what_was_written_however_it_is_read(kind, parts, sizes):
    whole = b"".join(parts)
    source = Source(b"".join(packed(parts, kind)), unpacked=True)
    assert source.head(7) == whole[:7]
    pieces = [source.read(n) for n in sizes]
    assert b"".join([*pieces, source.read()]) == whole
    assert source.n_read == len(whole) and source.read() == source.read(5) == b""


@pytest.mark.parametrize("kind", BOTH)
def test_several_frames_are_one_file_and_gzip_may_be_filled_up_with_zeros(kind):
    data = compressed(b"one ", kind) + compressed(b"", kind) + compressed(b"two", kind)
    assert Source(data, unpacked=True).read() == b"one two"
    if kind == "gzip":
        assert Source(data + bytes(2000), unpacked=True).read() == b"one two"


@pytest.mark.parametrize("kind", BOTH)
def test_every_truncation_and_junk_at_the_end_is_told(kind):
    data = compressed(PLAIN, kind)
    for n in range(4, len(data)):
        with pytest.raises(CompressionError, match=f"malformed {kind}: it ends too early"):
            Source(data[:n], unpacked=True).read()
    with pytest.raises(CompressionError, match=f"malformed {kind}: "):
        Source(data + b"junk", unpacked=True).read()


@pytest.mark.parametrize("kind", BOTH)
def test_a_changed_byte_is_told_or_of_no_account(kind, tmp_path):
    data, told = compressed(PLAIN, kind), 0
    file = tmp_path / f"f.json{SUFFIX[kind]}"
    for at in range(4, len(data)):
        file.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        try:
            assert read_bytes(str(file)) == PLAIN
        except DocumentError as error:
            told += str(error).startswith(f"{file}: malformed {kind}: ") and "\n" not in str(error)
    assert told > len(data) * 3 // 4


@pytest.mark.check
@pytest.mark.parametrize("kind", BOTH)
def test_what_decompresses_to_more_than_a_limit_is_refused_before_it_is_there(kind, tmp_path):
    bomb = tmp_path / f"bomb{SUFFIX[kind]}"
    write_pieces((b"{" if k == 0 else b" " * 2**20 for k in range(1000 if campaign() else 200)), str(bomb))
    assert bomb.stat().st_size < 2**21
    result = invoke("info", bomb, "--max-memory", "50M")
    assert result.exit_code == 1
    assert result.stderr == (
        f"tidu info: error: {bomb}: decompresses to more than the limit of 50 MiB; allow more with --max-memory SIZE\n"
    )
    with limited(Limits(memory=2**26)), reading(str(bomb)) as source:
        assert source.head(3) == b"{  "  # what is not read is not decompressed
    with pytest.raises(LimitError), limited(Limits(memory=2**20)), reading(str(bomb)) as source:
        source.read()


@pytest.mark.check
def test_the_memory_of_a_bomb_is_bounded(tmp_path):
    bomb = tmp_path / "bomb.json.gz"
    write_pieces((b"{" if k == 0 else b" " * 2**20 for k in range(2000 if campaign() else 600)), str(bomb))
    code = (
        "import sys; from click.testing import CliRunner; from tidu_cli.cli.main import cli\n"
        "CliRunner().invoke(cli, ['info', sys.argv[1], '--max-memory', '30M'])\n"
        "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"
    )
    done = subprocess.run([sys.executable, "-c", code, bomb], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 200_000  # KiB, of 600 MiB and more that it stands for


MANY = 10**6
"""Entries of what follows: 80 MB of Python's objects in a few kilobytes."""

MADE_OF = {
    "numbers in JSON": b'{"tidu":1,"graphs":[{"name":"f","inputs":[],"nodes":[{"op":"constant","attrs":{"data":[' + b"0," * MANY,
    "objects in JSON": b'{"tidu":1,"graphs":[' + b"{}," * MANY + b"{}]}",
    "maps in msgpack": b"\x82\xa4tidu\x01\xa6graphs\xdd" + MANY.to_bytes(4, "big") + b"\x80" * MANY,
    "lists in msgpack": b"\x82\xa4tidu\x01\xa4meta\xdd" + MANY.to_bytes(4, "big") + b"\x90" * MANY,
}


@pytest.mark.every
@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("what", MADE_OF)
def test_objects_that_are_made_of_a_file_are_bounded_beside_its_bytes(what, kind):
    source = Source(compressed(MADE_OF[what], kind), unpacked=True)
    with limited(Limits(memory=20 * MANY)), pytest.raises(CompressionError) as caught:
        parse(source)
    assert caught.value.kind is LimitError and "stands for numbers and objects of about " in str(caught.value)


@pytest.mark.check
@pytest.mark.parametrize("what", MADE_OF)
def test_objects_are_bounded_before_they_take_memory_and_without_a_limit_by_the_size_of_the_file(what, monkeypatch):
    monkeypatch.setattr(compression, "SMALL", 5 * MANY)
    source = Source(compressed(MADE_OF[what], "gzip"), unpacked=True)

    def refused() -> None:
        with limited(Limits()), pytest.raises(CompressionError, match="more than the limit of"):
            parse(source)

    assert peak(refused) < 25 * MANY


def test_an_honest_file_is_within_the_bound_of_its_size(monkeypatch):
    monkeypatch.setattr(compression, "SMALL", 0)
    with limited(Limits()):
        assert parse(Source(compressed(PLAIN, "gzip"), unpacked=True)) == parse(Source(PLAIN))


def test_lists_of_values_count_with_what_is_in_them(tmp_path):
    file = tmp_path / "v.msgpack.gz"
    file.write_bytes(compressed(b"\x81\xa1x\xdd" + (MANY // 10).to_bytes(4, "big") + b"\x91\x00" * (MANY // 10), "gzip"))
    line = invoke("eval", F, "--inputs", file, "--max-memory", "20M").stderr
    assert "stands for numbers and objects of about 2" in line and "more than the limit of 20 MiB" in line


def test_files_of_values_are_bounded_likewise(tmp_path):
    file = tmp_path / "v.json.gz"
    file.write_bytes(compressed(b'{"x": [' + b"0," * MANY + b"0]}", "gzip"))
    line = invoke("eval", F, "--inputs", file, "--max-memory", "20M").stderr
    assert f"{file}: stands for numbers and objects of about 80.1 MiB, more than the limit of 20 MiB; allow more" in line


@settings(max_examples=examples(20))
@given(
    st.recursive(
        st.none() | st.floats(allow_nan=False) | st.text(max_size=5), lambda e: st.lists(e) | st.dictionaries(st.text(), e)
    )
)
def test_what_is_expected_of_json_is_no_less_than_it_takes(data):
    text = json.dumps([data] * 50).encode()
    asked: list[int] = []
    source = Source(compressed(text, "gzip"), unpacked=True)
    source.read()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression.Unpacked, "require_room", lambda self, made: asked.append(made))
        source.require_room_for_json(text)
    assert peak(lambda: json.loads(text)) <= asked[0] + 5000


@pytest.mark.parametrize("kind", BOTH)
def test_documents_arrays_and_files_of_values(kind, tmp_path):
    document, values, array = (tmp_path / f"{name}{SUFFIX[kind]}" for name in ("f.msgpack", "v.npz", "x.npy"))
    succeed("convert", F, "-o", document)
    np.save(tmp_path / "x.npy", np.float64(3))
    array.write_bytes(compressed((tmp_path / "x.npy").read_bytes(), kind))
    assert succeed("eval", document, "--set", f"x=@{array}") == b'{"y": 18.0}\n'
    succeed("eval", document, "--set", "x=3", "--format", "npz", "-o", values)
    succeed("build", "2 * y", "-i", "y:f64[]", "-o", tmp_path / "g.json")
    assert succeed("eval", tmp_path / "g.json", "--inputs", values) == succeed(
        "eval", tmp_path / "g.json", "--inputs", "-", input=values.read_bytes()
    )
    array.write_bytes(array.read_bytes()[:-5])
    assert f"--set x: {array}: malformed {kind}: it ends too early" in invoke("eval", F, "--set", f"x=@{array}").stderr


def test_without_a_library_zstandard_is_refused_with_the_line_that_installs_it(monkeypatch, tmp_path):
    def missing(name: str):
        raise ImportError(name)

    monkeypatch.setattr(compression, "import_module", missing)
    line = "Zstandard needs Python 3.14, or a package: pip install 'tidu[zstd]'"
    file = tmp_path / "f.json.zst"
    result = invoke("convert", F, "-o", file)
    assert result.exit_code == 2 and result.stderr.endswith(f"Error: Invalid value for '-o': '{file}': {line}\n")
    file.write_bytes(b"\x28\xb5\x2f\xfd rest")
    assert invoke("info", file).stderr == f"tidu info: error: {file}: {line}\n"
    assert invoke("info", input=file.read_bytes()).stderr == f"tidu info: error: stdin: {line}\n"


def test_gzip_is_what_other_programs_read_and_write():
    assert gzip.decompress(compressed(PLAIN, "gzip")) == PLAIN
    for data in (gzip.compress(PLAIN, mtime=5), zlib.compress(PLAIN, wbits=31)):
        assert Source(data, unpacked=True).read() == PLAIN
