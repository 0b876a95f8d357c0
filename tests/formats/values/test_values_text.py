"""Values as csv, npy and a table: what other programs and people read."""

from __future__ import annotations

import csv
import io
import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.cli.running import F, invoke, succeed
from tidu_cli.errors import DocumentError
from tidu_cli.formats.values import FORMATS, read_values, write_values
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.types import RecordType, TensorType

POINT = RecordType("Point", (("x", TensorType("f64")), ("at", TensorType("datetime[s]", (2,)))))


def csv_of(values, types=None) -> list[list[str]]:
    return list(csv.reader(io.StringIO(write_values(values, "csv", types or {}).decode())))


@given(
    hnp.arrays(
        st.sampled_from([np.float64, np.float32, np.float16, np.int64, np.uint8, np.bool_, np.complex128, np.complex64]),
        hnp.array_shapes(min_dims=0, max_dims=2, max_side=4),
    )
)
def test_csv_tells_every_number_from_others_of_its_dtype(array):
    header, *rows = csv_of({Key("a"): array})
    columns = array.reshape(len(array) if array.ndim else 1, -1)
    assert header == (["a"] if array.ndim < 2 else [f"a[:,{k}]" for k in range(array.shape[1])])
    read = [[x == "true" for x in row] if array.dtype == bool else [array.dtype.type(_number(x)) for x in row] for row in rows]
    np.testing.assert_array_equal(np.array(read, array.dtype).reshape(columns.shape), columns)


def _number(text: str) -> int | complex:
    return int(text) if re.fullmatch("-?[0-9]+", text) else complex(text) if "j" in text else float(text)


def test_csv_looks_as_promised():
    values = {
        parse_key("y@-1"): np.array(0.1),
        Key("v"): np.array([1.0, np.inf, np.nan]),
        Key("f"): np.array([0.1, 2], np.float32),
        Key("z"): np.array([1 - 2j]),
        Key("b"): np.array([True]),
        Key("i"): np.array(-3),
        Key("h"): np.array([0.1], ml_dtypes.bfloat16),
        Key('a,"\n'): np.array([[1.0, 2], [3, 4]]),
    }
    assert csv_of(values) == [
        ["y@-1", "v", "f", "z", "b", "i", "h", 'a,"\\n[:,0]', 'a,"\\n[:,1]'],
        ["0.1", "1.0", "0.1", "1-2j", "true", "-3", "0.100098", "1.0", "2.0"],
        ["", "inf", "2.0", "", "", "", "", "3.0", "4.0"],
        ["", "nan", "", "", "", "", "", "", ""],
    ]
    record = {Key("p"): {"x": np.array(1.5), "at": np.array([0, np.iinfo(np.int64).min])}}
    assert csv_of(record, {Key("p"): POINT}) == [["p.x", "p.at"], ["1.5", "1970-01-01T00:00:00"], ["", "NaT"]]
    assert csv_of({Key("p"): None}, {Key("p"): POINT})[1] == ["0.0", "1970-01-01T00:00:00"]


def test_what_has_no_place_is_told_with_what_has():
    with pytest.raises(DocumentError, match=re.escape("csv has rows and columns, and a is f64[1,2,3]; write json, npz or npy")):
        write_values({Key("a"): np.zeros((1, 2, 3))}, "csv")
    with pytest.raises(
        DocumentError, match=re.escape("npy holds one array, and there are 2 (a, b); ask for one of them, or write npz")
    ):
        write_values({Key("a"): np.zeros(1), Key("b"): np.zeros(1)}, "npy")
    types = {Key("p"): POINT, Key("p.x"): TensorType("f64")}
    for format_ in ("csv", "npz", "table"):
        with pytest.raises(DocumentError, match=r"two values would be called 'p\.x' in"):
            write_values({Key("p"): (1.0, np.zeros(2, int)), Key("p.x"): 1.0}, format_, types)


def test_npy_is_what_numpy_reads():
    for array in (np.arange(6.0).reshape(2, 3).T, np.array(1j), np.zeros((0, 3), np.int8)):
        again = np.load(io.BytesIO(write_values({Key("a"): array}, "npy")))
        assert again.dtype == array.dtype and again.shape == array.shape and again.tolist() == array.tolist()
    times = np.load(io.BytesIO(write_values({Key("t"): np.array([5])}, "npy", {Key("t"): TensorType("datetime[s]", (1,))})))
    assert times.dtype == "M8[s]" and times.astype(int).tolist() == [5]


def test_the_table_is_aligned_and_folds_long_arrays():
    values = {
        Key("loss"): np.array(0.123456789),
        Key("slope"): np.array([1.0, -20.5, 1e-9]),
        Key("A"): np.array([[1.0, 2], [3, -1 / 3]]),
        Key("z\x1b"): np.array([1 + 2j]),
        Key("ok"): np.array(True),
        Key("n"): np.array([1, 200]),
    }
    assert write_values(values, "table").decode().splitlines() == [
        "loss   f64[]     0.123457",
        "slope  f64[3]    [    1 -20.5 1e-09]",
        "A      f64[2,2]  [[        1         2]",
        "                  [        3 -0.333333]]",
        "z\\x1b  c128[1]   [1+2j]",
        "ok     bool[]    true",
        "n      i64[2]    [  1 200]",
    ]
    folded = write_values({Key("a"): np.arange(10.0**5)}, "table").decode()
    assert folded.count("\n") == 1 and "..." in folded and len(folded) < 120
    assert write_values({}, "table") == b""


@pytest.mark.parametrize("format_", FORMATS)
def test_commands_that_print_values_write_each(format_, tmp_path):
    suffix = {"table": "txt"}.get(format_, format_)
    for command in (
        ["eval", F, "--set", "x=3"],
        ["grad", F, "--wrt", "x", "--set", "x=3"],
        ["jacobian", F, "--wrt", "x", "--set", "x=3"],
    ):
        out = tmp_path / f"{command[0]}.{suffix}"
        succeed(*command, "-o", out)
        assert succeed(*command, "--format", format_) == out.read_bytes() != b""
        key, value = {"eval": ("y", 18), "grad": ("x@-1", 12), "jacobian": ("y/x", 12)}[command[0]]
        if format_ == "csv":
            assert out.read_text() == f"{key}\n{value}.0\n"
        if format_ in ("json", "npz", "msgpack"):
            (name,) = read_values(out.read_bytes(), "v")
            assert str(name) == key


def test_without_values_there_is_nothing_to_write_as_these():
    for format_ in ("csv", "npy", "npz", "table"):
        result = invoke("grad", F, "--wrt", "x", "--format", format_)
        assert result.exit_code == 2 and f"{format_} is for values; give them with --set or --inputs" in result.stderr
