"""NaT, which is no time: what orders datetimes treats it as it treats NaN among floats."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.running import invoke
from tests.graphs.templates import apply, make_case
from tests.tiers import examples
from tidu_cli.formats.values import write_values
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import parse_type

NAT = -(2**63)
NUMBERS = {"offset_dims": [], "collapsed_slice_dims": [0], "start_index_map": [0]}
SCATTER = {"update_window_dims": [], "inserted_window_dims": [0], "scatter_dims_to_operand_dims": [0]}
INDICES = np.array([[0], [2], [2], [4]], np.int32)

ORDERING = [
    *((op, {}, 2) for op in ("eq", "ne", "lt", "le", "gt", "ge", "max", "min")),
    ("clamp", {}, 3),
    *((op, {"axes": [0]}, 1) for op in ("reduce_max", "reduce_min")),
    *((op, {"axes": [0], "index_dtype": "i32"}, 1) for op in ("argmax", "argmin")),
    *((op, {"axis": 0, "reverse": r}, 1) for op in ("cummax", "cummin") for r in (False, True)),
    ("sort", {"dimension": 0, "is_stable": True, "num_keys": 1}, 1),
    ("sort", {"dimension": 0, "is_stable": True, "num_keys": 2}, 2),
    ("top_k", {"k": 3, "axis": 0}, 1),
    *((op, {"dimension_numbers": SCATTER, "mode": "clip"}, 0) for op in ("scatter-max", "scatter-min")),
]


def results(op, attrs, dtype, arrays):
    types = [parse_type(f"{dtype}[{len(x)}]") for x in arrays]
    if op.startswith("scatter"):
        types.insert(1, parse_type("i32[4,1]"))
        arrays = [arrays[0], INDICES, arrays[1]]
    return apply(make_case(op, attrs, types), arrays)


@pytest.mark.parametrize(("op", "attrs", "n"), ORDERING)
@settings(max_examples=examples(60, check=15))
@given(data=st.data())
def test_nat_is_ordered_as_nan_is(op, attrs, n, data):
    element = st.none() | st.integers(-3, 3)
    sizes = [5] * n or [5, 4]
    drawn = [data.draw(st.lists(element, min_size=k, max_size=k)) for k in sizes]
    times = [np.array([NAT if x is None else x for x in xs]) for xs in drawn]
    floats = [np.array([np.nan if x is None else x for x in xs], float) for xs in drawn]
    for of_times, expected in zip(results(op, attrs, "datetime[s]", times), results(op, attrs, "f64", floats), strict=True):
        if expected.dtype.kind == "f":
            expected = np.where(np.isnan(expected), NAT, np.nan_to_num(expected).astype(np.int64))
        assert of_times.dtype == expected.dtype and np.asarray(of_times).tolist() == expected.tolist()


def test_what_there_is_not_of_datetimes_is_no_time():
    attrs = {"dimension_numbers": NUMBERS, "slice_sizes": [1], "mode": "fill"}
    case = make_case("gather", attrs, [parse_type("datetime[s][3]"), parse_type("i32[2,1]")])
    assert apply(case, [np.arange(3), np.array([[7], [1]], np.int32)])[0].tolist() == [NAT, 1]


def test_extrema_of_no_datetimes_are_the_ends_of_their_range():
    for op, end in (("reduce_max", NAT + 1), ("reduce_min", 2**63 - 1)):
        case = make_case(op, {"axes": [0]}, [parse_type("datetime[s][0]")])
        assert apply(case, [np.zeros(0, np.int64)])[0].tolist() == end


DOC = {
    "tidu": 1,
    "graphs": [
        {
            "name": "f",
            "inputs": [{"key": "t", "type": "datetime[ns][2]"}, {"key": "d", "type": "duration[D][2]"}],
            "nodes": [{"op": "retract", "inputs": [0, 1]}],
            "outputs": [{"key": "y", "value": 2}],
        }
    ],
}


def test_results_that_are_no_times_say_so(tmp_path):
    file, out = tmp_path / "f.json", tmp_path / "y.npz"
    file.write_text(json.dumps(DOC))
    at = ("--set", 't=["2026-01-01", "2026-01-01"]', "--set", 'd=[1e6, "NaN"]')
    assert json.loads(invoke("eval", file, *at).stdout) == {"y": ["NaT", "NaT"]}
    assert invoke("eval", file, *at, "-o", out).exit_code == 0
    assert np.isnat(np.load(out)["y"]).all()
    np.save(tmp_path / "y.npy", np.load(out)["y"])
    again = invoke("eval", file, "--set", f"t=@{tmp_path / 'y.npy'}", *at[2:])
    assert again.exit_code == 1 and "NaT, which is not a time" in again.stderr  # a value that is given is one
    values = write_values({Key("y"): np.array([NAT, 0])}, "json", {Key("y"): parse_type("datetime[D][2]")})
    assert values == b'{"y": ["NaT", "1970-01-01"]}\n'


@pytest.mark.parametrize(
    "given_move", ['t={"instant": {"periods": ["NaN", 0]}}', 't=["NaN", 1]', 't={"type": "duration[h][2]", "data": [1, "NaN"]}']
)
def test_moves_by_nan_are_refused(tmp_path, given_move):
    file = tmp_path / "f.json"
    file.write_text(json.dumps(DOC))
    result = invoke("eval", file, "--set", 't=["2026-01-01", "2026-01-01"]', "--set", "d=[0, 0]", "--move", given_move)
    assert result.exit_code == 1
    assert "move of t: datetime[ns][2] cannot be moved by NaN: it counts whole units" in result.stderr
