"""Small files that stand for much work: commands refuse them in one line, or are done within what a case may take."""

from __future__ import annotations

import gzip
import json
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from tests.custom.making import body, unary
from tests.fuzz.choices import Choices
from tests.fuzz.target import LONGEST_MESSAGE, Target
from tidu_cli.cli.main import cli

Graph = dict[str, Any]

LARGEST = 2**17
"""Bytes of a case's file: what is more is no small file."""

WORDS = (
    ("info",),
    ("check", "--all"),
    ("eval", "--set", "x=1"),
    ("grad", "--wrt", "x"),
    ("hessian", "--wrt", "x"),
    ("jacobian", "--wrt", "x*"),
    ("linearize", "--wrt", "x"),
    ("derivative", "--wrt", "x", "--order", "3"),
    ("convert", "-o", "out.json"),
    ("materialize",),
)
"""Commands that read a document, derive and run it."""


AROUND = (
    (b'{"tidu":1,"meta":{"a":[', b'0]},"graphs":[{"name":"f","inputs":[],"nodes":[],"outputs":[]}]}'),
    (
        b'{"tidu":1,"graphs":[{"name":"f","inputs":[{"key":"x","type":"f64[]"}],"nodes":[',
        b'{"op":"sin","inputs":[0]}],"outputs":[{"key":"y","value":1}]}]}',
    ),
)
"""Where in a document a list is."""


def document(nodes: list[Any], outputs: list[int], inputs: int = 1, type_: str = "f64[]", **more: Any) -> bytes:
    """A document of these nodes (op, inputs, attrs), of inputs x, x1, ...."""
    graph = {
        "name": "f",
        "inputs": [{"key": f"x{k or ''}", "type": type_} for k in range(inputs)],
        "nodes": [{"op": op, "inputs": args, "attrs": attrs} for op, args, attrs in nodes],
        "outputs": [{"key": f"y{k}", "value": value} for k, value in enumerate(outputs)],
    }
    return json.dumps({"tidu": 1, **more, "graphs": [graph]}).encode()


def doubling_ops(choices: Choices) -> bytes:
    """Operations each of which applies the one before a few times."""
    n, times = 1 + choices.below(40), 1 + choices.below(3)
    inner = ["sin", *(f"o{k}" for k in range(n))]
    ops = {f"o{k}": unary(body("x", [(inner[k], j) for j in range(times)], {"y": times}), "f64[]") for k in range(n)}
    return document([(f"o{n - 1}", [0], {})], [1], ops=ops)


def nested_loops(choices: Choices) -> bytes:
    """Scans within scans, of a few in each body."""
    depth, times, length = 1 + choices.below(16), 1 + choices.below(2), 1 + choices.below(3)
    nodes: list[Graph] = [{"op": "sin", "inputs": [0]}]
    for _ in range(depth):
        ends = [{"key": "c", "value": len(nodes)}]
        inner = {"inputs": [{"key": "c", "type": "f64[]"}], "nodes": nodes, "outputs": ends}
        attrs = {"length": length, "num_consts": 0, "num_carry": 1, "body": inner}
        nodes = [{"op": "scan", "inputs": [k], "attrs": attrs} for k in range(times)]
        if len(json.dumps(nodes)) > LARGEST // 16:  # what is derived of these is in proportion
            break
    return document([(node["op"], node["inputs"], node["attrs"]) for node in nodes], [len(nodes)])


def doubling_arrays(choices: Choices) -> bytes:
    """Arrays that become larger node by node."""
    n, size = 1 + choices.below(40), 2
    nodes: list[Any] = [("broadcast_in_dim", [0], {"shape": [2], "broadcast_dimensions": []})]
    for k in range(1, n):
        more = size * (1 + choices.below(3))
        nodes.append(("pad", [k, 0], {"padding_config": [[0, more, 0]]}))
        size += more
    return document([*nodes, ("reduce_sum", [n], {"axes": [0]})], [n + 1])


def many_blocks(choices: Choices) -> bytes:
    """As many outputs as inputs, or a graph of all of them."""
    n = 1 + choices.below(400)
    return document([("sin", [k], {}) for k in range(n)], list(range(n, 2 * n)), n)


def many_entries(choices: Choices) -> bytes:
    """What compresses well: numbers, lists, objects, nodes or blanks, as constant data and elsewhere."""
    n = 2 ** choices.below(25)
    entry = choices.pick((b"0,", b"[],", b"{},", b'"",', b'{"":0},', b'{"op":"sin","inputs":[0]},', b" "))
    before, after = choices.pick(AROUND)
    return gzip.compress(before + entry * (n // len(entry)) + after, 6, mtime=0)


def deep_keys(choices: Choices) -> bytes:
    """A key of many steps, and one that is long."""
    key = choices.pick(("x", "x.", "@1", "é")) * (1 + choices.below(2**14))
    return document([("sin", [0], {})], [1]).replace(b'"x"', json.dumps(key).encode())


KINDS = (doubling_ops, nested_loops, doubling_arrays, many_blocks, many_entries, deep_keys)


def make(choices: Choices) -> bytes:
    """The words of a command, a line; then the file."""
    words = choices.pick(WORDS)
    return json.dumps(words).encode() + b"\n" + choices.pick(KINDS)(choices)[:LARGEST]


def judge(case: bytes) -> str:
    """Run the command within this process. The guard sees to time and memory."""
    line, _, content = case.partition(b"\n")
    name, *words = json.loads(line)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        Path("in.json").write_bytes(content)
        result = CliRunner().invoke(cli, [name, "in.json", *words], prog_name="tidu")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in (0, 1, 2), f"status {result.exit_code}"
    assert "internal error" not in result.stderr and "out of memory" not in result.stderr, result.stderr
    if result.exit_code == 1 and name != "check":
        errors = [line for line in result.stderr.splitlines() if ": error: " in line]
        assert len(errors) == 1 and len(errors[0]) <= LONGEST_MESSAGE, f"not one short line: {result.stderr[:500]}"
    return f"status {result.exit_code}"


WORK = Target("work", ".work", make, judge)
