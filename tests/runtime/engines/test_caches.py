"""What engines keep between processes: as it was written, or not at all."""

from __future__ import annotations

import hashlib
import os
import stat
import zlib

import pytest

from tidu_cli.runtime import caches
from tidu_cli.runtime.caches import cached, keep


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TIDU_CACHE_DIR", str(tmp_path / "deep" / "cache"))
    return tmp_path / "deep" / "cache"


def test_what_is_kept_is_found(folder):
    assert cached("code") is None
    keep("code", b"machine code")
    assert cached("code") == b"machine code" and sorted(p.name for p in folder.iterdir()) == ["code", "tidu-key"]


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
    assert [p.stat().st_mode & 0o077 for p in (folder, folder / "code", folder / "tidu-key")] == [0, 0, 0]
    (folder / "code").chmod(0o620)
    assert cached("code") is None


PLANTED = {
    "a pipe": lambda path, kept: os.mkfifo(path),
    "a link": lambda path, kept: path.symlink_to(kept),
    "a second name": lambda path, kept: os.link(kept, path),
    "a copy": lambda path, kept: path.write_bytes(kept.read_bytes()),
    "a folder": lambda path, kept: path.mkdir(),
    "a socket": lambda path, kept: os.mknod(path, stat.S_IFSOCK | 0o600),
    "what a sum confirms": lambda path, kept: path.write_bytes(b"code" + zlib.crc32(b"code").to_bytes(4, "little")),
    "what a digest confirms": lambda path, kept: path.write_bytes(
        b"code" + hashlib.blake2b(b"other\0code", digest_size=32).digest()
    ),
}


@pytest.mark.every
@pytest.mark.parametrize("what", PLANTED)
def test_what_lies_under_another_name_is_not_run_nor_waited_for(folder, what):
    keep("code", b"machine code")
    PLANTED[what](folder / "other", folder / "code")
    assert cached("other") is None
    if what != "a folder":
        keep("other", b"other code")
        assert cached("other") == b"other code"


def test_files_from_elsewhere_are_not_run(folder, monkeypatch, tmp_path):
    keep("code", b"machine code")
    monkeypatch.setenv("TIDU_CACHE_DIR", str(tmp_path / "here"))
    keep("mine", b"other code")
    (tmp_path / "here" / "code").write_bytes((folder / "code").read_bytes())
    (tmp_path / "here" / "code").chmod(0o600)
    assert (cached("code"), cached("mine")) == (None, b"other code")


@pytest.mark.parametrize("damage", [lambda key: key.unlink(), lambda key: key.write_bytes(b""), lambda key: key.chmod(0o606)])
def test_a_key_that_is_lost_or_damaged_is_made_again(folder, damage):
    keep("code", b"machine code")
    damage(folder / "tidu-key")
    assert cached("code") is None
    keep("code", b"machine code")
    assert cached("code") == b"machine code"


def test_a_link_that_leads_nowhere_keeps_no_room_from_being_made(folder, monkeypatch):
    keep("xla-0", bytes(96))
    (folder / "xla-1").symlink_to("nowhere")
    monkeypatch.setattr(caches, "MOST", 150)
    os.utime(folder / "xla-0", (0, 0))
    keep("native-2", bytes(96))
    assert sorted(p.name for p in folder.iterdir() if p.name != "tidu-key")[0] == "native-2" and not (folder / "xla-0").exists()


def test_what_was_not_used_for_longest_makes_room(folder, monkeypatch):
    monkeypatch.setattr(caches, "MOST", 400)
    folder.mkdir(parents=True)
    (folder / "notes").write_bytes(bytes(1000))
    for k in range(3):
        keep(f"xla-{k}", bytes(96))
        os.utime(folder / f"xla-{k}", (k, k))
    assert cached("xla-0") == bytes(96)
    keep("native-3", bytes(96))
    assert sorted(p.name for p in folder.iterdir()) == ["native-3", "notes", "tidu-key", "xla-0", "xla-2"]
