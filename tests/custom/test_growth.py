"""Own ops with long graphs, and many own ops: work grows as the graphs do, and rules run once for each kind of step."""

from __future__ import annotations

import gc
import hashlib
import sys
from collections.abc import Callable
from typing import Any

import msgpack
import pytest

from tests.custom.making import Data, body, definition, encoded, read, unary, using
from tests.tiers import campaign, few
from tidu_cli.custom.definitions import OpDefinition
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.graph import Document
from tidu_cli.graph.identity import digests
from tidu_cli.graph.keys import parse_key
from tidu_cli.rules.recording import templates
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.rename import inline
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

A = parse_key("a")
KINDS = ("forward", "jvp", "backward", "transpose")


def calls(run: Callable[[], object]) -> int:
    """How many calls of functions, of Python and of C, and how many steps of generators something takes."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def chain(kind: str, n: int) -> Data:
    """An op of n nodes one after the other, whose derivative is as long."""
    if kind == "transpose":
        negations = [("neg", k) for k in range(n)]
        return unary(body("x", negations, {"y": n}), transpose=body("y@-1", negations, {"x@-1": n}))
    forward = body("x", [("sin", k) if k % 2 else ("mul", k, 0) for k in range(n)], {"y": n})
    products = [("cos", 0), *(("mul", 2, k + 2 if k else 1) for k in range(n))]
    rule = {"jvp": body("x x@1", products, {"y@1": n + 2}), "backward": body("x y@-1", products, {"x@-1": n + 2})}
    return unary(forward, **({kind: rule[kind]} if kind in rule else {}))


def wide(kind: str, n: int) -> Data:
    """An op of n inputs and n outputs."""
    xs, ys = [f"x{k}" for k in range(n)], [f"y{k}" for k in range(n)]
    forward = body(" ".join(xs), [("neg", k) for k in range(n)], {y: n + k for k, y in enumerate(ys)})
    tangents, cotangents = [f"{x}@1" for x in xs], [f"{y}@-1" for y in ys]
    negations = [("neg", k) for k in range(n)]
    back = body(" ".join(cotangents), negations, {f"{x}@-1": n + k for k, x in enumerate(xs)})
    rule = {
        "jvp": body(" ".join(tangents), negations, {f"{y}@1": n + k for k, y in enumerate(ys)}),
        "backward": back,
        "transpose": back,
    }
    ports = dict.fromkeys(xs, "f64[]"), dict.fromkeys(ys, "f64[]")
    return definition(*ports, forward, **({kind: rule[kind]} if kind in rule else {}))


def used(ops: Data, op: str) -> Data:
    """A document that applies an op once."""
    inputs, outputs = ops[op]["inputs"], ops[op]["outputs"]
    graph = {
        "name": "f",
        "inputs": [{"key": f"a{k}" if k else "a", "type": "f64[]"} for k in range(len(inputs))],
        "nodes": [{"op": op, "inputs": list(range(len(inputs)))}],
        "outputs": [{"key": f"z{k}", "value": len(inputs) + k} for k in range(len(outputs))],
    }
    return {"tidu": 1, "ops": ops, "graphs": [graph]}


def derived(document: Document) -> None:
    """Differentiated forward, in reverse, and once more, and written out."""
    linear = linearize(document, [i.key for i in document.head.inputs])
    back = transpose(linear)
    inline(materialize(back))
    linearize(back, [A])


def uses_of_a_long_op(kind: str, n: int) -> Data:
    """An op that uses n times one of n nodes, which stays as it is when it is differentiated."""
    return used({"o": chain("transpose", n), "p": unary(body("x", [("o", k) for k in range(n)], {"y": n}))}, "p")


SHAPES: dict[str, tuple[Callable[[str, int], Data], Callable[[Document], object], int]] = {
    "long": (lambda kind, n: used({"o": chain(kind, n)}, "o"), derived, 400),
    "wide": (lambda kind, n: used({"o": wide(kind, n)}, "o"), derived, 200),
    "of many uses": (
        lambda kind, n: used({"o": chain(kind, 2), "p": unary(body("x", [("o", k) for k in range(n)], {"y": n}))}, "p"),
        derived,
        400,
    ),
    "of many uses of a long one": (uses_of_a_long_op, lambda document: linearize(document, [A]), 200),
}


@pytest.mark.check
@pytest.mark.parametrize(("shape", "kind"), few([(shape, kind) for shape in SHAPES for kind in KINDS], 3))
def test_twice_as_many_nodes_take_twice_as_long(shape, kind):
    make, run, n = SHAPES[shape]

    def work(n: int) -> int:
        data = encoded(make(kind, n))
        return calls(lambda: run(parse_document(data, "test")[0]))

    work(n)  # what is imported, and set up once
    assert work(2 * n) < 2.2 * work(n)


@pytest.mark.parametrize("kind", KINDS)
def test_rules_run_once_for_each_kind_of_step(kind, monkeypatch):
    runs: dict[int, list[str]] = {}
    jvp = templates.tangents_of_results

    def noting(trace, op, node):
        runs[n].append(op)
        return jvp(trace, op, node)

    monkeypatch.setattr(templates, "tangents_of_results", noting)
    for n in (50, 200):
        runs[n] = []
        derived(read(used({"o": chain(kind, n)}, "o")))
    assert runs[50] == runs[200] and len(runs[50]) < 30


def test_ops_nest_as_deep_as_is_allowed():
    """Each level of 64 takes a few calls within one another, of which Python allows a thousand."""
    forward = {"o0": unary(body("x", [("neg", 0)], {"y": 1}))}
    forward |= {f"o{k}": unary(body("x", [(f"o{k - 1}", 0)], {"y": 1})) for k in range(1, 64)}
    back = {"t": unary(body("x", [("o62", 0)], {"y": 1}), transpose=body("y@-1", [("o62", 0)], {"x@-1": 1}))}
    limit, depth = sys.getrecursionlimit(), 0
    frame = sys._getframe()
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    sys.setrecursionlimit(depth + 850)
    try:
        for ops, op in ((forward, "o63"), (forward | back, "t")):
            derived(read(used(ops, op)))
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.check
def test_no_garbage_is_collected_while_a_rule_is_recorded():
    """Nothing that is recorded is in a cycle, and looking at a million objects again and again took most of the time."""
    n = 20_000 if campaign() else 8_000
    linear = linearize(read(used({"o": chain("forward", n)}, "o")), [A])
    document = read(used({"o": chain("backward", n)}, "o"))
    passes: list[object] = []

    def note(phase: str, info: dict[str, int]) -> None:
        passes.append(info["generation"]) if info["generation"] else None

    gc.callbacks.append(note)
    try:
        linearize(document, [A])
        transpose(linear)
    finally:
        gc.callbacks.remove(note)
    assert len(passes) <= 8
    assert gc.isenabled()


# Digests


def chain_of_ops(n: int, uses: int) -> Data:
    """Ops of which each is the derivative of the next, and two that are those of one another; all used with several attrs."""
    ops = {"sine": unary(body("x", [("sin", 0)], {"y": 1}), jvp=body("x x@1", [("cosine", 0), ("mul", 2, 1)], {"y@1": 3}))}
    ops["cosine"] = unary(
        body("x", [("cos", 0)], {"y": 1}), jvp=body("x x@1", [("sine", 0), ("neg", 2), ("mul", 3, 1)], {"y@1": 4})
    )
    for k in range(n):
        slope = ("cos", 0) if k == 0 else (f"o{k - 1}", 0)
        forward, jvp = body("x", [("sin", 0)], {"y": 1}), body("x x@1", [slope, ("mul", 2, 1)], {"y@1": 3})
        ops[f"o{k}"] = unary(forward, jvp=jvp, attrs={"k": 0})
    nodes = [{"op": "sine", "inputs": [0]}, {"op": "cosine", "inputs": [1]}]
    nodes += [{"op": f"o{k % n}", "inputs": [2 + k], "attrs": {"k": k // n}} for k in range(n * uses)]
    graph = {"name": "f", "inputs": [{"key": "a", "type": "f64[2]"}], "nodes": nodes, "outputs": []}
    return {"tidu": 1, "ops": ops, "graphs": [graph]}


def ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: ordered(value[key]) for key in sorted(value, key=str.encode)}
    return [ordered(entry) for entry in value] if isinstance(value, list) else value


def specified(data: Data) -> list[bytes]:
    """The digests of the values of such a document, as docs/format.md has them."""
    ops = data["ops"]

    def sha256(value: object) -> bytes:
        return hashlib.sha256(msgpack.packb(value)).digest()

    def reached(op: str) -> Data:
        definitions: Data = {}
        waiting = [op]
        while waiting:
            name = waiting.pop()
            if name in ops and name not in definitions:
                definitions[name] = ops[name]
                waiting += [node["op"] for kind in ("forward", "jvp") for node in ops[name][kind]["nodes"]]
        return definitions

    (graph,) = data["graphs"]
    values = [sha256(["input", "a", []])]
    for node in graph["nodes"]:
        op, attrs = ordered([node["op"], reached(node["op"])]), node.get("attrs", {})
        values.append(sha256(["node", op, attrs, None, [values[v] for v in node["inputs"]], 0]))
    return values


def test_digests_are_as_specified():
    data = chain_of_ops(12, 3)
    assert digests(read(data)) == [specified(data)]
    linear = linearize(read(using({"o": chain("backward", 3)}, "o", "f64[2]")), [A])
    assert digests(linear) == digests(parse_document(encoded_document(linear), "test")[0])


def encoded_document(document: Document) -> bytes:
    from tidu_cli.formats.write import format_document

    return format_document(document, "json")


def test_digests_encode_each_definition_once(monkeypatch):
    document = read(chain_of_ops(50, 4))
    encodings: list[str] = []
    to_data = OpDefinition.to_data
    monkeypatch.setattr(OpDefinition, "to_data", lambda self: encodings.append(self.name) or to_data(self))
    digests(document)
    assert sorted(encodings) == sorted(["sine", "cosine", *(f"o{k}" for k in range(50))])


def test_digests_of_more_uses_cost_what_the_uses_cost():
    """What an op reaches is hashed once, and not for each node."""
    few, many = (read(chain_of_ops(40, uses)) for uses in (20, 40))
    digests(few)
    base, less, more = (calls(lambda d=d: digests(d)) for d in (read(chain_of_ops(40, 1)), few, many))
    assert more - base < 2.2 * (less - base)
