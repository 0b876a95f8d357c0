"""Graphs within nodes as bodies of scans and of loops, each recorded once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.control_flow.bodies import Body, operands_of, type_of
from tidu_cli.adapters.numpy.recorder import Recorder, distinct, innermost
from tidu_cli.adapters.onnx.reading.node import Node, RefusedError, Value
from tidu_cli.graph.types import TensorType

Step = Callable[..., tuple[Sequence[Value], Sequence[Value]]]
"""From what a loop carries, and slices, to what it carries on, and results."""


class ChangesTypeError(RefusedError):
    """What a loop carries is of another type after a step."""


@dataclass
class Recorded:
    """A body, with what it gave for its arguments."""

    body: Body
    arguments: Sequence[Array]
    carried: Sequence[Value]
    results: Sequence[Value]

    @property
    def recorder(self) -> Recorder:
        """The recording around the body."""
        return self.body.recorder.around[-1]


def recorded(step: Step, carried: Sequence[tuple[str, Value]], slices: Sequence[TensorType]) -> Recorded:
    """A step on arguments of the types of what is carried, by name, and of slices.

    Raises ChangesTypeError if what it carries on is of other types.
    """
    recorder = innermost()
    assert recorder is not None
    body = Body(recorder)
    types = [*[type_of(x) for _, x in carried], *slices]
    names = distinct([*[name or "carry" for name, _ in carried], *["x"] * len(slices)])
    with body.going_on():
        arguments = [body.argument(name, type_) for name, type_ in zip(names, types, strict=True)]
        after, results = step(*arguments)
    for (name, _), due, x in zip(carried, types[: len(carried)], after, strict=True):
        if isinstance(x, list) or type_of(x) != due:
            told = "a sequence" if isinstance(x, list) else type_of(x)
            raise ChangesTypeError(f"carries '{name}' as {due}, but its graph gives {told} for it")
    return Recorded(body, arguments, after, results)


def scanned(
    node: Node, recording: Recorded, first: Sequence[Value], slices: Sequence[Value], length: int, reverse: bool = False
) -> tuple[list[Array], list[Array]]:
    """What a scan with this body carries out, and its stacked results. Slices that its body does not need are not taken."""
    body, n = recording.body, len(first)
    _give(body, [*recording.carried, *recording.results])
    if not body.outputs:
        return [], []
    outside = body.outside
    used = [k for k in range(len(slices)) if body.needs(n + k)] or ([0] if slices and not (n or outside) else [])
    out = recording.recorder.emit_all(
        "scan",
        [*operands_of(recording.recorder, outside), *map(node.traced, first), *[node.traced(slices[k]) for k in used]],
        length=length,
        num_consts=len(outside),
        num_carry=n,
        reverse=reverse,
        body=body.closed(outside, [*range(n), *[n + k for k in used]]),
    )
    return list(out[:n]), list(out[n:])


def repeated(node: Node, recording: Recorded, first: Sequence[Value], goes_on: Callable[[Sequence[Array]], Array]) -> list[Array]:
    """What a loop with this body carries out, which is run as long as `goes_on` holds of what is carried."""
    body, recorder = recording.body, recording.recorder
    _give(body, recording.carried)
    condition = Body(recorder)
    with condition.going_on():
        given = [condition.argument(f"x{k}", x.type) for k, x in enumerate(recording.arguments)]
        condition.give(["goes_on"], [condition.array(goes_on(given))])
    cond_consts, body_consts = condition.outside, body.outside
    out = recorder.emit_all(
        "while",
        [*operands_of(recorder, cond_consts), *operands_of(recorder, body_consts), *map(node.traced, first)],
        cond_consts=len(cond_consts),
        body_consts=len(body_consts),
        condition=condition.closed(cond_consts),
        body=body.closed(body_consts),
    )
    return list(out)


def _give(body: Body, values: Sequence[Value]) -> None:
    with body.going_on():
        arrays = [body.array(x) for x in values]
    body.give(distinct(["y"] * len(arrays)), arrays)


def scan(
    node: Node, step: Step, carried: Sequence[tuple[str, Value]], slices: Sequence[Value], length: int, reverse: bool = False
) -> tuple[list[Any], list[Any]]:
    """A scan over slices along axis 0: what it carries out, and its stacked results. Raises ChangesTypeError."""
    types = [type_of(x).with_shape(type_of(x).shape[1:]) for x in slices]
    return scanned(node, recorded(step, carried, types), [x for _, x in carried], slices, length, reverse)
