"""Values files: three formats told apart by content, exact and deterministic, with one line for what is malformed."""

from __future__ import annotations

import io
import json
import math
import re
import subprocess
import sys
import warnings
import zipfile

import hypothesis.strategies as st
import msgpack
import numpy as np
import pytest
from hypothesis import given, settings

from tests.graphs.templates import type_of
from tests.lax.sampling.samples import ORDER, SHAPES, draw
from tests.tiers import examples
from tests.waiting import cpu_seconds
from tidu_cli.errors import DocumentError, LimitError, UnknownNameError
from tidu_cli.formats.chunks.sources import sources_of
from tidu_cli.formats.values import parse_assignment, read_values, write_values
from tidu_cli.formats.values.writing import FORMATS, require_writable
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.types import ITEMSIZE, TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.runtime.inputs import input_array

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PASSES = st.lists(st.integers(1, 9) | st.integers(-9, -1), max_size=3).map(tuple)


@pytest.mark.parametrize("format", ["npz", "msgpack"])
@settings(max_examples=examples(60))
@given(data=st.data())
def test_typed_values_round_trip_bit_for_bit(format, data):
    keys = data.draw(st.lists(st.builds(Key, NAMES, PASSES), min_size=1, max_size=4, unique=True))
    values = {}
    for key in keys:
        shape = data.draw(st.sampled_from(SHAPES))
        dtype = numpy_dtype(np, data.draw(st.sampled_from(ORDER)))
        n = math.prod(shape) * dtype.itemsize
        bits = (
            bytes(b & 1 for b in data.draw(st.binary(min_size=n, max_size=n)))
            if dtype.kind == "b"
            else data.draw(st.binary(min_size=n, max_size=n))
        )
        values[key] = np.frombuffer(bits, dtype).reshape(shape)
    written = write_values(values, format)
    assert written == write_values(values, format)
    read = read_values(written, "v")
    assert list(read) == keys
    for key, value in values.items():
        array = input_array("input x", type_of(value), read[key])
        assert (array.dtype, array.shape, array.tobytes()) == (value.dtype, value.shape, value.tobytes())


@pytest.mark.parametrize("dtype", ORDER)
@pytest.mark.parametrize("shape", SHAPES)
def test_json_round_trips_exactly(dtype, shape):
    value = draw(dtype, shape)
    if value.dtype.kind in "fV" and value.size > 3:
        value.flat[0], value.flat[1], value.flat[2] = math.nan, math.inf, -math.inf
    text = write_values({Key("x"): value}, "json")
    array = input_array("input x", type_of(value), read_values(text, "v")[Key("x")])
    assert array.dtype == value.dtype
    np.testing.assert_array_equal(array.astype(complex), value.astype(complex))
    assert text.count(b"\n") == 1 and text.endswith(b"}\n")


def test_json_looks_as_promised():
    values = {
        parse_key("x@-1@2"): np.array(4.0), Key("z"): np.array([1 - 2j, complex(0, math.nan)]),
        Key("b"): np.array([[True], [False]]),
        Key("é\n"): np.float32(0.1), Key("n"): np.array([1.0, math.inf, -math.inf]), Key("i"): np.array(2**63, np.uint64),
    }  # fmt: skip
    assert write_values(values, "json").decode() == (
        '{"x@-1@2": 4.0, "z": [{"re": 1.0, "im": -2.0}, {"re": 0.0, "im": "NaN"}], "b": [[true], [false]], '
        '"é\\n": 0.10000000149011612, "n": [1.0, "Infinity", "-Infinity"], "i": 9223372036854775808}\n'
    )
    assert write_values({}, "json") == b"{}\n"


def test_npz_is_what_numpy_reads_and_writes():
    values = {parse_key("x@1"): np.arange(6.0).reshape(2, 3).T, Key("a/b=c"): np.array(1j)}
    loaded = np.load(io.BytesIO(write_values(values, "npz")))
    assert {k: loaded[k].tolist() for k in loaded} == {str(k): v.tolist() for k, v in values.items()}
    out = io.BytesIO()
    np.savez_compressed(out, **{"x@1": np.arange(3)})
    assert read_values(out.getvalue(), "v")[parse_key("x@1")].tolist() == [0, 1, 2]


def test_reads_plain_and_typed_values():
    text = """{"x": 3, "y@-1": [1, 2.5], "z": {"re": 1, "im": "-Infinity"}, "w": [[{"re": 0, "im": 2}, 1]],
               "t": {"type": "f64[2]", "data": [1, "NaN"]}, "u": {"type": "u8[2]", "base64": "AQI="}}"""
    for data in (text.encode(), b"\xef\xbb\xbf" + text.encode(), msgpack.packb(json.loads(text))):
        values = read_values(data, "v")
        assert values[Key("x")] == 3 and values[parse_key("y@-1")] == [1, 2.5]
        assert values[Key("z")] == complex(1, -math.inf) and values[Key("w")] == [[2j, 1]]
        assert str(values[Key("t")].type) == "f64[2]" and values[Key("u")].data == b"\x01\x02"


def npz(*members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that occur twice
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data)
    return out.getvalue()


def npy(array, **options):
    out = io.BytesIO()
    np.save(out, array, **options)
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "v: malformed JSON"),
        (b"{", "v: malformed JSON: ends within the value at line 1, column 2; is it cut off?"),
        (b"[1 2]", "v: malformed JSON: a comma or a closing bracket is missing at line 1, column 4"),
        (b"[1,]", "v: malformed JSON: a value is missing at line 1, column 4"),
        (b'{"x": 1}}', "v: malformed JSON: more data after the value at line 1, column 9"),
        (b"{x: 1}", "v: malformed JSON: a key in double quotes is missing at line 1, column 2"),
        (b"\xff\x00", "v: malformed JSON"),
        (b"[1]", "hold an object of values by key"),
        (b'{"x": 1, "x": 2}', "v: the key 'x' occurs twice"),
        (b'{"x@": 1}', "v: malformed key 'x@'"),
        (b'{"x": NaN}', 'NaN is written as a string, "NaN"'),
        (b'{"x": {"re": 1}}', "v: x: an object is a complex number"),
        (b'{"x": {"re": 1, "im": true}}', "v: x: the parts of a complex number are numbers"),
        (b'{"x": {"re": 1, "im": 1' + b"0" * 400 + b"}}", "v: x: a part of a complex number is out of range"),
        (b'{"x": {"type": "f99[]", "data": [1]}}', "v: x: unknown type 'f99[]'"),
        (b'{"x": ' + b"[" * 10**5, "nested too deeply"),
        (msgpack.packb({1: 2}), "malformed msgpack"),
        (b"\x82\xa1x\x01\xa1x\x02", "v: the key 'x' occurs twice"),
        (b"\x81\xa1x", "malformed msgpack"),
        (b"\x81\xa1x\x01\x01", "malformed msgpack"),
        (b"PK\x03\x04nothing", "malformed npz"),
        (npz(("x.npy", npy(np.zeros(2))), ("x.npy", npy(np.zeros(2)))), "the key x occurs twice"),
        (npz(("x.npy", npy(np.array([None]), allow_pickle=True))), "malformed npz: member 'x.npy'"),
        (npz(("x.npy", npy(np.zeros(9))[:-1])), "malformed npz: member 'x.npy'"),
        (npz(("x@@@.npy", b"")), "malformed key"),
        (npy(np.zeros(2)), "a .npy file holds one array"),
    ],
)
def test_malformed_files_are_refused_in_one_line(data, message):
    with pytest.raises(DocumentError, match=re.escape(message)) as caught:
        read_values(data, "v", {Key("x"): TensorType("f64")})
    assert "\n" not in str(caught.value) and str(caught.value).startswith("v")


def header(text, data=b"\0" * 24, version=1):
    """A .npy file of this header, whatever it says."""
    encoded = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(encoded).to_bytes(2 if version == 1 else 4, "little") + encoded + data


@pytest.mark.parametrize(
    "data",
    [
        header("{'descr': '<f8'"),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': ((,)}"),
        header("{'descr': (), 'fortran_order': False, 'shape': (True,)}"),
        header("{'descr': [('a', '<f8', (2,))], 'fortran_order': False, 'shape': (True,)}"),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}", version=2),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (3,)}", version=9),
        header("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", b"\1\2"),
        header("(" * 90),
    ],
)
def test_a_damaged_array_is_refused_in_one_line(data, tmp_path):
    # NumPy reads the header with Python's parser, whose errors are of many kinds.
    (tmp_path / "x.npy").write_bytes(data)
    with pytest.raises(
        (DocumentError, LimitError), match=r"--set x: (cannot read .* as \.npy: |an array of .* more than)"
    ) as caught:
        parse_assignment(f"x=@{tmp_path}/x.npy", [Key("x")])
    said = [str(caught.value)]
    with pytest.raises(
        (DocumentError, LimitError), match=r"malformed npz: member 'x\.npy': |v: x: an array of .* more than"
    ) as caught:
        read_values(npz(("x.npy", data)), "v")
    said.append(str(caught.value))
    (tmp_path / "z.npz").write_bytes(npz(("x.npy", data)))
    for name in ("x.npy", "z.npz") if b"|b1" not in data and b"99" not in data else ():  # as parts are read, and so not all of it
        with pytest.raises(DocumentError) as caught:
            sources_of(f"{tmp_path}/{name}")
        said.append(str(caught.value))
    for text in said:
        assert "\n" not in text and re.search("write it again|convert it with astype|max_memory=", text)
        assert not re.search(r"EOF|statement|header|arr\.size|dtype descriptor|never closed", text)


def test_a_member_that_ends_before_its_array_is_not_read_beyond_it(tmp_path):
    (tmp_path / "z.npz").write_bytes(npz(("x.npy", header("{'descr': '<f8', 'fortran_order': False, 'shape': (3,)}", b"\0" * 20))))
    with pytest.raises(DocumentError, match=r"z\.npz: x: is cut off, at 20 bytes of 24; write it again"):
        sources_of(f"{tmp_path}/z.npz")


def test_keys_steer_no_terminal_and_make_no_lines_in_csv():
    values = {Key(f"a{chr(c)}b"): np.float64(1) for c in (*range(1, 32), 127, 0x85, 0x9B, 0x2028, 0x202E)}
    values |= {Key("A\x1b"): np.eye(2)}
    text = write_values(values, "csv", {}).decode()
    assert text.count("\n") == 3 and all(c.isprintable() for line in text.splitlines() for c in line)


def test_a_header_that_python_2_wrote_is_read():
    data = header("{'descr': '<f8', 'fortran_order': False, 'shape': (3L,)}")
    assert read_values(npz(("x.npy", data)), "v")[Key("x")].shape == (3,)


def test_a_damaged_archive_is_refused():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x.npy", npy(np.arange(90.0)))
    whole, refused = out.getvalue(), 0
    for at in range(30, 60):
        try:
            values = read_values(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :], "v")
            np.testing.assert_array_equal(values[Key("x")], np.arange(90.0))  # the byte was of no account
        except DocumentError as error:
            refused += str(error).startswith("v: malformed npz: member 'x.npy': ")
    assert refused > 20


def test_assignments(tmp_path):
    declared = [Key("x"), parse_key("y@-1"), Key("a=b"), Key("a")]
    assert parse_assignment("x=3", declared) == (Key("x"), 3)
    assert parse_assignment("y@-1=[1, 2]", declared) == (parse_key("y@-1"), [1, 2])
    assert parse_assignment('x={"re": 1, "im": 2}', declared) == (Key("x"), 1 + 2j)
    assert parse_assignment("a=b=3", declared) == (Key("a=b"), 3)
    assert parse_assignment("a=3", declared) == (Key("a"), 3)
    path = tmp_path / "b=c.npy"
    np.save(path, np.arange(3))
    key, value = parse_assignment(f"a=@{path}", declared)
    assert (key, value.tolist()) == (Key("a"), [0, 1, 2])


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("x", DocumentError, "write it as KEY=VALUE"),
        ("x=", DocumentError, "--set x: no value stands after the ="),
        ("x=three", DocumentError, "--set x: 'three' is not a value; write 3, .5"),
        ("x=\udc80", DocumentError, "is not a value; write 3, .5"),
        ("xs=3", UnknownNameError, "no graph has an input 'xs'; did you mean 'x'?"),
        ("q=r=3", UnknownNameError, "no graph has an input 'q'"),
        ("x@=3", DocumentError, "malformed key"),
        ("x=@/no/such.npy", DocumentError, "no such file: /no/such.npy"),
        (f"x=@{__file__}", DocumentError, "cannot read"),
    ],
)
def test_malformed_assignments(text, error, message):
    with pytest.raises(error, match=re.escape(message)):
        parse_assignment(text, [Key("x")])


@pytest.mark.campaign
def test_large_arrays_are_written_in_reasonable_time():
    value = np.random.default_rng(0).standard_normal(10**5)
    texts: list[bytes] = []
    assert cpu_seconds(lambda: texts.append(write_values({Key("x"): value}, "json"))) < 2
    assert read_values(texts[0], "v")[Key("x")] == value.tolist()


def test_importing_does_not_import_numpy():
    code = "import sys, tidu_cli.formats.values, tidu_cli.runtime.evaluate; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_cannot_be_written_is_refused_before_it_is_computed() -> None:
    """And nothing else is: the same formats refuse the types, and the arrays."""

    def refusal(write, *args):
        try:
            write(*args)
        except DocumentError as error:
            return str(error)
        return None

    for format_ in FORMATS:
        for dtype in (*ITEMSIZE, "datetime[ms]", "duration[h]"):
            for shape in ((), (2,), (2, 2), (2, 2, 2)):
                type_ = TensorType(dtype, shape)
                types = {Key("x"): type_, Key("y"): type_}
                value = np.ones(shape, np.int64 if dtype.startswith("datetime") else numpy_dtype(np, dtype))
                told = refusal(write_values, dict.fromkeys(types, value), format_, types)
                assert refusal(require_writable, format_, types) == told, (format_, type_)
