"""What the tests of compose share: functions of one number, and what was bound."""

from __future__ import annotations

from collections.abc import Callable

from tests.cli.running import ROOT, succeed
from tests.graphs.interpret import free_inputs
from tests.graphs.sketch import Value, function, key, op
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.transforms.linking.compose import Composition

X = key("x")
sin, cos, exp, tanh = map(op, ("sin", "cos", "exp", "tanh"))
SAMPLES = [ROOT / "samples" / "compose_f.json", ROOT / "samples" / "compose_g.json"]


def scalar(name: str, body: Callable[[Value], Value], *, x: str = "x", y: str = "y") -> Document:
    """A document of one graph, a function of one number."""
    return function(name, {x: "f64[]"}, lambda value: {y: body(value)})


def bound(composition: Composition) -> list[list[str]]:
    """What each joint bound, as INPUT=KEY."""
    return [[f"{i}={o}" for i, o in joint.bound] for joint in composition.joints]


def inexact(doc: Document) -> list[Key]:
    return [k for k, t in free_inputs(doc).items() if t.inexact]


def composed_by_command(*arguments: object) -> bytes:
    return succeed("compose", "--quiet", *arguments)
