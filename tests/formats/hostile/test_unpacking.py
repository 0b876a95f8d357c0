"""msgpack that is read as it comes in is what msgpack's own reader makes of all of it at once, or refused like it."""

from __future__ import annotations

import io
import json
from array import array
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.formats.hostile.mutations import mutated_structures
from tests.formats.plain import documents
from tests.tiers import examples
from tidu_cli.errors import DocumentError
from tidu_cli.formats import msgpack as tidu_msgpack
from tidu_cli.formats.files import Source
from tidu_cli.formats.msgpack import binary_header, unpacked
from tidu_cli.formats.nodes.numbering import TYPECODES, Pairs
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document, formatted

VALID = sorted((Path(__file__).parents[3] / "samples" / "conformance" / "valid").iterdir())
PLACES = [
    (),
    ("graphs",),
    ("graphs", 0),
    ("graphs", 0, "nodes"),
    *[("graphs", 0, "nodes", c) for c in ("code", "args", "external")],
]
COLUMN = {"dtype": "i32", "data": array("i", range(5)).tobytes()}
NODES = {"table": [], "code": COLUMN, "args": COLUMN, "external": [[0, 1], [3, 70_000], [2**31 - 1, 0]]}
DOCUMENT = {"tidu": 1, "graphs": [{"name": "f", "nodes": NODES}], "bindings": []}
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


class Dripping(io.RawIOBase):
    """A file that gives a few bytes at a time, as a pipe may."""

    def __init__(self, data: bytes, step: int) -> None:
        self._data, self._step = io.BytesIO(data), step

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._data.readinto(memoryview(buffer)[: self._step])


def pairs_once(pairs: list[tuple[object, object]]) -> dict[object, object]:
    if not all(type(key) is str for key, _ in pairs) or len(dict(pairs)) < len(pairs):
        raise DocumentError("keys")
    return dict(pairs)


def at_once(data: bytes) -> object:
    """What msgpack's own reader makes of the data; None if it is to be refused."""
    try:
        return msgpack.unpackb(data, object_pairs_hook=pairs_once, strict_map_key=False)
    except (ValueError, msgpack.UnpackException, DocumentError):
        return None


def in_full(part: Any) -> Any:
    """With nothing compact in it."""
    if isinstance(part, Pairs | array):
        return list(part) if isinstance(part, Pairs) else part.tobytes()
    if isinstance(part, list):
        return [in_full(entry) for entry in part]
    return {name: in_full(entry) for name, entry in part.items()} if isinstance(part, dict) else part


def agrees(data: bytes, step: int = 7) -> object:
    whole = at_once(data)
    for file in (data, io.BufferedReader(Dripping(data, step), 16)):
        try:
            value = in_full(unpacked(Source(file)))
        except DocumentError:
            value = None
        assert repr(value) == repr(whole)  # which tells 1 from True
    return whole


def replaced(owner: Any, place: tuple[str | int, ...], value: object) -> object:
    """A part of the document with a value at this place in it."""
    if not place:
        return value
    step, *rest = place
    if isinstance(owner, list):
        return [replaced(entry, tuple(rest), value) if k == step else entry for k, entry in enumerate(owner)]
    return {**owner, step: replaced(owner[step], tuple(rest), value)}


@given(st.sampled_from(PLACES), ANY, st.integers(1, 40))
def test_any_value_at_any_place(place: tuple[str | int, ...], value: object, step: int) -> None:
    data = msgpack.packb(replaced(DOCUMENT, place, value))
    if 0x80 <= data[0] <= 0x8F or data[0] in (0xDE, 0xDF):
        assert agrees(data, step) is not None


@given(
    st.sampled_from(["code", "args"]), st.sampled_from([*TYPECODES, "f64", 3, None]), ANY | st.binary(max_size=24), st.booleans()
)
def test_columns_in_any_order_of_fields(name: str, dtype: object, data: object, dtype_first: bool) -> None:
    fields = [("dtype", dtype), ("data", data)]
    column = dict(fields if dtype_first else reversed(fields))
    agrees(msgpack.packb(replaced(DOCUMENT, ("graphs", 0, "nodes", name), column)))


@given(st.lists(st.lists(st.integers(-(2**33), 2**33) | st.booleans(), min_size=1, max_size=3), max_size=12), st.integers(1, 4))
@example([[0, 1]] * 9, 4)
@example([[0, 1]] * 5 + [[True, 1]] + [[2, 3]] * 5, 4)
def test_pairs_in_blocks(entries: list[object], block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tidu_msgpack, "PAIRS", block)
        agrees(msgpack.packb(replaced(DOCUMENT, ("graphs", 0, "nodes", "external"), entries)))


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 2**8, 2**16])
def test_columns_in_blocks(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tidu_msgpack, "READ_AT_ONCE", 256)
    values = array("i", range(n))
    data = msgpack.packb(replaced(DOCUMENT, ("graphs", 0, "nodes", "args"), {"dtype": "i32", "data": values.tobytes()}))
    agrees(data)
    plain: Any = unpacked(Source(data))
    assert plain["graphs"][0]["nodes"]["args"]["data"] == values  # itself, and no bytes to be made an array of later


def test_what_is_large_is_compact() -> None:
    nodes: Any = unpacked(Source(msgpack.packb(DOCUMENT)))["graphs"][0]["nodes"]  # type: ignore[index]
    assert isinstance(nodes["external"], Pairs) and isinstance(nodes["code"]["data"], array)
    assert list(nodes["external"]) == NODES["external"] and nodes["external"][1] == [3, 70_000]


@settings(max_examples=examples(2000, check=80))
@given(documents(), st.data())
def test_documents_cut_anywhere(data: dict[str, object], draw: st.DataObject) -> None:
    document, _ = parse_document(json.dumps(data).encode(), "d")
    whole = format_document(document, "msgpack", listed=draw.draw(st.booleans()))
    agrees(whole)
    cut = whole[: draw.draw(st.integers(1, len(whole) - 1))]
    assert agrees(cut) is None
    with pytest.raises(DocumentError, match=r"^malformed msgpack: ends within the document; is it cut off\?$"):
        unpacked(Source(cut))


def test_every_beginning_is_incomplete() -> None:
    for nodes in (NODES, [{"op": "add"}, {"op": "mul"}]):
        whole = msgpack.packb(replaced(DOCUMENT, PLACES[3], nodes))
        for n in range(1, len(whole)):
            with pytest.raises(DocumentError, match="ends within the document"):
                unpacked(Source(whole[:n]))
        with pytest.raises(DocumentError, match="more data after the document"):
            unpacked(Source(whole + b"\0"))


@pytest.mark.parametrize("n", [0, 1, 2**8 - 1, 2**8, 2**16 - 1, 2**16])
def test_binary_data_begins_as_msgpack_says(n: int) -> None:
    assert binary_header(n) + bytes(n) == msgpack.packb(bytes(n))


def test_columns_that_are_too_long_are_refused_before_anything_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    assert binary_header(tidu_msgpack.MOST_BYTES) == b"\xc6\xff\xff\xff\xff"
    document, _ = parse_document(Path("samples/f.json").read_bytes(), "f")
    monkeypatch.setattr(tidu_msgpack, "MOST_BYTES", 15)
    with pytest.raises(DocumentError, match=r"^graph 'f': a column of 4 entries is more than msgpack can hold; write JSON$"):
        formatted(document, "msgpack")
    assert format_document(document, "msgpack", listed=True)


@settings(max_examples=examples(2000, check=50))
@given(mutated_structures(), st.binary(max_size=3), st.integers(0, 2**20))
def test_broken_bytes(data: object, put: bytes, at: int) -> None:
    try:
        whole = msgpack.packb(data)
    except OverflowError:
        return
    at %= len(whole)
    broken = whole[:at] + put + whole[at + len(put) :]
    if 0x80 <= broken[0] <= 0x8F:
        agrees(broken)


@pytest.mark.parametrize("path", VALID, ids=[path.name for path in VALID])
def test_samples(path: Path) -> None:
    document, _ = parse_document(path.read_bytes(), path.name)
    assert agrees(format_document(document, "msgpack")) is not None


def test_sources_are_read_once_and_counted() -> None:
    source = Source(b"abcdef")
    assert source.head(2) == b"ab" and source.head(1) == b"a" and source.head(3) == b"abc" and source.n_read == 0
    assert source.read(1) == b"a" and source.read(4) == b"bcde" and source.n_read == 5
    assert source.read() == b"f" and source.read() == source.read(3) == source.head(3) == b"" and source.n_read == 6
