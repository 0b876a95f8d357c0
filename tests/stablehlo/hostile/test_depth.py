"""Graphs within graphs as StableHLO: what is written is read, and what JAX does not write is refused, and the file kept."""

from __future__ import annotations

import pytest

import tidu_cli
from tests.formats.hostile.test_depth import loop, nested
from tests.formats.plain import read
from tidu_cli.errors import DocumentError


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "f.mlir"
    tidu_cli.save(read(nested(20, loop)), path)
    assert tidu_cli.compile(tidu_cli.load(path))(c=[[1.0], [1.0]])["c"].tolist() == [[2.0], [3.0]]


def test_what_is_too_deep_is_refused(tmp_path):
    path = tmp_path / "f.mlir"
    path.write_bytes(b"module {}")
    with pytest.raises(DocumentError, match="graphs within graphs nest deeper than JAX writes modules of; write"):
        tidu_cli.save(read(nested(64, loop)), path)
    assert path.read_bytes() == b"module {}"
