"""What engines keep between processes: as it was written, or not at all."""

from __future__ import annotations

import os

import pytest

from tidu_cli.runtime.engines import caches
from tidu_cli.runtime.engines.caches import cached, keep


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TIDU_CACHE_DIR", str(tmp_path / "deep" / "cache"))
    return tmp_path / "deep" / "cache"


def test_what_is_kept_is_found(folder):
    assert cached("code") is None
    keep("code", b"machine code")
    assert cached("code") == b"machine code" and [p.name for p in folder.iterdir()] == ["code"]


@pytest.mark.parametrize("damage", [b"", b"\0", b"machine code", b"Machine code\x00\x00\x00\x00"])
def test_what_is_damaged_is_not(folder, damage):
    keep("code", b"machine code")
    (folder / "code").write_bytes(damage)
    assert cached("code") is None


def test_what_another_user_wrote_is_not_run(monkeypatch):
    keep("code", b"machine code")
    me = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: me + 1)
    assert cached("code") is None


def test_only_its_user_may_write_it(folder):
    keep("code", b"machine code")
    assert (folder / "code").stat().st_mode & 0o077 == 0


def test_what_was_not_used_for_longest_makes_room(folder, monkeypatch):
    monkeypatch.setattr(caches, "MOST", 350)
    folder.mkdir(parents=True)
    (folder / "notes").write_bytes(bytes(1000))
    for k in range(3):
        keep(f"xla-{k}", bytes(96))
        os.utime(folder / f"xla-{k}", (k, k))
    assert cached("xla-0") == bytes(96)
    keep("native-3", bytes(96))
    assert sorted(p.name for p in folder.iterdir()) == ["native-3", "notes", "xla-0", "xla-2"]
