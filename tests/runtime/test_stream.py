"""tidu eval --stream: each item has its answer, in order, before the next is read; the same as evaluating by itself."""

from __future__ import annotations

import io
import json
import resource
import signal
import subprocess

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidu
from tests.cli.running import ENVIRONMENT, ROOT, invoke, process
from tests.programs import needs
from tests.tiers import examples
from tidu_cli.api.streaming import answers, lines, messages
from tidu_cli.runtime.choosing import PLAIN
from tidu_cli.transforms.materialize import materialize

ROSENBROCK = ROOT / "samples" / "rosenbrock.json"
GRADIENT = tidu.grad(tidu.load(ROSENBROCK), wrt=["x", "y"], value=True)
HEAD = materialize(GRADIENT).head


def streamed(data: bytes, kind: str = "json", fixed=None, engine=PLAIN) -> list[bytes]:
    """The answers to the items of a file."""
    items = (lines if kind == "json" else messages)(io.BytesIO(data))
    return list(answers(HEAD, {tidu.Key(k): v for k, v in (fixed or {}).items()}, items, kind, engine))


NUMBER = st.floats() | st.integers(-(2**60), 2**60)


def spelled(x: float) -> object:
    return x if isinstance(x, int) or np.isfinite(x) else {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[str(x)]


@given(st.lists(st.tuples(NUMBER, NUMBER), min_size=1, max_size=8))
@settings(max_examples=examples(100), deadline=None)
def test_answers_are_what_evaluation_gives(points):
    data = "".join(json.dumps({"x": spelled(x), "y": spelled(y)}) + "\n" for x, y in points).encode()
    expected = [tidu.evaluate(GRADIENT, {"x": x, "y": y}, engine="numpy") for x, y in points]
    for answer, due in zip(streamed(data), expected, strict=True):
        np.testing.assert_equal({k: float(v) for k, v in json.loads(answer).items()}, {k: float(v) for k, v in due.items()})


@given(st.lists(st.tuples(st.floats(), st.floats()), min_size=1, max_size=8), st.integers(1, 40))
@settings(max_examples=examples(50), deadline=None)
def test_arrays_of_msgpack_are_exact_however_they_arrive(points, size):
    class Pieces(io.BytesIO):
        def read1(self, _size=-1):
            return self.read(size)

    packed = b"".join(msgpack.packb({"x": x, "y": y}) for x, y in points)
    found = list(answers(HEAD, {}, messages(Pieces(packed)), "msgpack", PLAIN))
    for answer, (x, y) in zip(found, points, strict=True):
        due = tidu.evaluate(GRADIENT, {"x": x, "y": y}, engine="numpy")
        given = {key: np.frombuffer(value["data"], "<f8") for key, value in msgpack.unpackb(answer).items()}
        np.testing.assert_equal(given, {key: np.atleast_1d(value) for key, value in due.items()})


@needs("llvmlite")
def test_engines_agree():
    points = b'{"x": 2, "y": 1}\n{"x": 0.5, "y": -3}\n'
    plain, native = (process("eval", "--stream", "--engine", e, ROSENBROCK, input=points).stdout for e in ("numpy", "native"))
    assert plain == native and plain.count(b"\n") == 2


WRONG = (
    b'{"x": 1}',
    b"rubbish",
    b'{"x": "one", "y": 2}',
    b'{"x": [1], "y": 2}',
    b'{"x": 1, "x": 2, "y": 3}',
    b"[1]",
    b"\xff",
    b'{"x": NaN}',
)


@pytest.mark.parametrize("wrong", WRONG)
def test_a_line_that_is_wrong_is_answered_and_the_next_is_read(wrong):
    right = b'{"x": 2, "y": 1}\n'
    first, error, last = map(json.loads, streamed(right + b"\n" + wrong + b"\n" + right))
    assert first == last and first["x@-1"] == 2402.0
    assert list(error) == ["error"] and error["error"].startswith("line 3: ")


def test_values_that_stay_come_once_and_those_of_a_line_before_them():
    assert [json.loads(a)["f"] for a in streamed(b'{"x": 2}\n{"x": 2, "y": 4, "id": 7}\n', fixed={"y": 1})] == [901.0, 1.0]
    with pytest.raises(tidu.TiduError, match="input y: expected f64"):
        streamed(b"", fixed={"y": "one"})


def test_each_line_has_its_answer_before_the_next_is_written():
    command = ["tidu", "eval", str(ROSENBROCK), "--stream"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT) as child:
        for x in range(3):
            child.stdin.write(b'{"x": %d, "y": 0}\n' % x)
            child.stdin.flush()
            assert json.loads(child.stdout.readline())["f"] == 100 * x**4 + (1 - x) ** 2
        child.stdin.write(b'{"x": 5, ')
        child.stdin.flush()
        child.stdin.write(b'"y": 25}')
        child.stdin.close()
        assert json.loads(child.stdout.readline()) == {"f": 16.0}
    assert child.returncode == 0


def test_a_reader_that_goes_ends_it():
    command = ["tidu", "eval", str(ROSENBROCK), "--stream"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as child:
        child.stdin.write(b'{"x": 1, "y": 1}\n')
        child.stdin.flush()
        assert child.stdout.readline()
        child.stdout.close()
        child.stdin.write(b'{"x": 1, "y": 1}\n')
        child.stdin.flush()
        assert child.wait() == -signal.SIGPIPE
        assert child.stderr.read() == b""


@pytest.mark.check
def test_many_lines_and_long_ones_take_no_more_memory():
    def many():
        for k in range(3000):
            yield k, b'{"x": %d, "y": 0}' % k

    wide = tidu.trace(lambda x: (x * x).sum(), np.zeros(100_000))
    list(answers(HEAD, {}, many(), "json", PLAIN))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert sum(1 for _ in answers(HEAD, {}, many(), "json", PLAIN)) == 3000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**12  # in kB
    line = json.dumps({"x": [0.123456789012345] * 100_000}).encode()
    (answer,) = answers(materialize(wide).head, {}, lines(io.BytesIO(line)), "json", PLAIN)
    assert json.loads(answer).popitem()[1] == pytest.approx(100_000 * 0.123456789012345**2)


def test_a_line_longer_than_memory_is_answered_and_skipped():
    data = b'{"x": 1, "y": 1}\n' + b" " * 3000 + b"\n" + b'{"x": 1, "y": 1}\n'
    done = invoke("eval", ROSENBROCK, "--stream", "--max-memory", "1000", input=data)
    first, error, last = map(json.loads, done.stdout.splitlines())
    assert first == last == {"f": 0.0}
    assert error == {"error": "line 2: longer than the limit of 1000 B; allow more with --max-memory SIZE"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xc1", "message 2: not msgpack"),
        (b"\x82\xa1x", "message 2: breaks off after 3 bytes"),
        (b"\xc6\xff\xff\xff\xff", "message 2: breaks off after 5 bytes"),
    ],
)
def test_what_is_not_msgpack_ends_it(data, message):
    done = process("eval", ROSENBROCK, "--stream", "msgpack", input=msgpack.packb({"x": 1, "y": 1}) + data)
    assert (done.returncode, done.stderr.decode().startswith(f"tidu eval: error: {message}")) == (1, True), done.stderr
    assert list(msgpack.unpackb(done.stdout)) == ["f"]


def test_a_message_that_is_no_map_is_answered():
    data = msgpack.packb({"x": 1, "y": 1}) + msgpack.packb([1, 2]) + msgpack.packb({"x": 2, "y": 1})
    first, second, third = map(msgpack.unpackb, streamed(data, "msgpack"))
    assert (list(first), list(third)) == (["f", "x@-1", "y@-1"],) * 2
    assert second == {"error": "message 2: is not a map of values by key"}


def test_progress_says_nothing_of_lines():
    """They are no long work: with -v each would begin a stage, as one evaluation does."""
    done = process("eval", ROSENBROCK, "--stream", "-v", input=b'{"x": 1, "y": 1}\n' * 3)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 3
    assert done.stderr.decode().count("evaluating") == 0
