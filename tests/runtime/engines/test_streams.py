"""Long streams: nothing is lost, order is kept, memory is flat; writers that are slow, readers that go, items of 10 MB."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgpack
import numpy as np
import pytest

import tidu
from tests.cli.running import ENVIRONMENT, ROOT
from tests.programs import needs
from tests.tiers import campaign

GRADIENT = ROOT / "samples" / "rosenbrock.json"
KINDS = ("json", "msgpack")
ENGINES = [
    "numpy",
    "auto",
    pytest.param("native", marks=needs("llvmlite")),
    pytest.param("xla", marks=[needs("jax"), pytest.mark.jax]),
]
LIMIT = 900.0
"""The seconds after which a process that waits is ended, so that its test fails."""

PAGES = 4 << 20
"""The bytes by which a process may grow: pages that its allocator keeps."""


@contextmanager
def streaming(file: Path, kind: str, engine: str = "numpy") -> Iterator[subprocess.Popen[bytes]]:
    command = ["tidu", "eval", str(file), "--stream", kind, "--engine", engine]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=ENVIRONMENT, **pipes) as child:
        limit = threading.Timer(LIMIT, child.kill)
        limit.start()
        try:
            yield child
        finally:
            limit.cancel()
            child.kill()


def packed(kind: str, values: dict[str, object]) -> bytes:
    return msgpack.packb(values) if kind == "msgpack" else json.dumps(values).encode() + b"\n"


def answers(kind: str, child: subprocess.Popen[bytes]) -> Iterator[dict[str, np.ndarray]]:
    """The outputs of each item as they come, flat."""
    if kind == "json":
        for line in child.stdout:
            yield {key: np.ravel(value) for key, value in json.loads(line).items()}
        return
    unpacker = msgpack.Unpacker(max_buffer_size=0)
    while part := child.stdout.read1():
        unpacker.feed(part)
        for answer in unpacker:
            yield {key: np.frombuffer(value["data"], "<f8") for key, value in answer.items()}


def write(child: subprocess.Popen[bytes], pieces: Iterable[bytes]) -> None:
    """Write all to a process and close its input, unless it is gone."""
    with suppress(BrokenPipeError), child.stdin as file:
        for piece in pieces:
            file.write(piece)


def resident(child: subprocess.Popen[bytes]) -> int:
    """The bytes of memory that a process has."""
    return int(Path(f"/proc/{child.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.check
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", ENGINES)
def test_many_items_are_all_answered_in_order_and_memory_is_flat(kind: str, engine: str) -> None:
    n = 100_000 if campaign() else 1000
    with streaming(GRADIENT, kind, engine) as child:
        items = (packed(kind, {"x": k / n, "y": 1.0}) for k in range(n))
        writer = threading.Thread(target=write, args=(child, items))
        writer.start()
        before = 0
        for k, answer in enumerate(answers(kind, child)):
            x = k / n
            assert answer["f"][0] == pytest.approx((1 - x) ** 2 + 100 * (1 - x * x) ** 2, 1e-12), k
            if k == n // 10:
                before = resident(child)
            elif k == n - 10 and engine != "auto":  # which may load another engine
                assert resident(child) - before < PAGES
        assert k == n - 1
        writer.join()
        assert (child.wait(), child.stderr.read()) == (0, b"")


@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_that_goes_in_the_middle_ends_it_quietly(kind: str) -> None:
    """While both pipes are full."""
    with streaming(GRADIENT, kind) as child:
        endless = iter(lambda: packed(kind, {"x": 1.0, "y": 1.0}) * 100, b"")
        writer = threading.Thread(target=write, args=(child, endless))
        writer.start()
        for _, answer in zip(range(10), answers(kind, child), strict=False):
            assert answer["f"][0] == 0.0
        child.stdout.close()
        assert child.wait() == -signal.SIGPIPE
        assert child.stderr.read() == b""
        writer.join()


@pytest.mark.parametrize("kind", KINDS)
def test_a_writer_that_trickles_is_answered_as_soon_as_an_item_is_whole(kind: str) -> None:
    with streaming(GRADIENT, kind) as child:
        found = answers(kind, child)
        for x in (0.0, 1.0, 2.0):
            for byte in packed(kind, {"x": x, "y": 0.0}):
                os.write(child.stdin.fileno(), bytes([byte]))
            assert next(found)["f"][0] == (1 - x) ** 2 + 100 * x**4
        child.stdin.close()
        assert next(found, None) is None
        assert (child.wait(), child.stderr.read()) == (0, b"")


@pytest.mark.check
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", [*ENGINES[:1], *ENGINES[2:]])
def test_items_of_ten_megabytes_come_through_and_leave_no_memory(tmp_path: Path, kind: str, engine: str) -> None:
    size, times = (500_000, 12) if campaign() else (50_000, 4)
    file = tmp_path / "wide.json"
    tidu.save(tidu.trace(lambda x: {"first": x[0], "twice": x + x}, np.zeros(size)), file)
    tail = [0.1234567890123456] * (size - 1)
    with streaming(file, kind, engine) as child:
        items = (packed(kind, {"x": [float(k), *tail]}) for k in range(times))
        assert len(packed(kind, {"x": tail})) > 8 * size
        writer = threading.Thread(target=write, args=(child, items))
        writer.start()
        before = 0
        for k, answer in enumerate(answers(kind, child)):
            assert answer["first"][0] == k and len(answer["twice"]) == size and answer["twice"][-1] == 2 * tail[0]
            if k == times // 2:
                before = resident(child)
        after = resident(child) if child.poll() is None else before
        assert k == times - 1 and after - before < 8 * size + PAGES
        writer.join()
        assert (child.wait(), child.stderr.read()) == (0, b"")
