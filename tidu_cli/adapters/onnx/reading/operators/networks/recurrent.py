"""Recurrent networks as scans, and the bodies of scans and loops, each recorded once.

What a recurrent network makes of its inputs alone is one product before the scan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.control_flow.bodies import Body, operands_of, type_of
from tidu_cli.adapters.numpy.recorder import Recorder, distinct, innermost
from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, computed, counted, number
from tidu_cli.adapters.onnx.reading.operators import elementwise
from tidu_cli.adapters.onnx.reading.operators.shapes import filled
from tidu_cli.frozen import replace
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


Function = Callable[[Value], Value]

Cell = Callable[[Value, "Weights", Sequence[Value], Sequence[Function]], Sequence[Value]]
"""From a step's product of its inputs with weights, the other weights, the states and activations, to the states after it."""

PARAMETERS: Mapping[str, tuple[float, ...]] = {
    "Affine": (1.0, 0.0),
    "Elu": (1.0,),
    "HardSigmoid": (0.2, 0.5),
    "LeakyRelu": (0.01,),
    "Relu": (),
    "ScaledTanh": (1.0, 1.0),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "ThresholdedRelu": (1.0,),
}
"""The activations, and what their alpha and beta are by default."""


class Weights:
    """The weights of one direction but those of inputs: the recurrent ones are transposed, those of the first gates and the others.

    `inner` are the biases that are not added before the scan: those of the gates in which a product comes first, or None.
    """

    def __init__(self, recurrent: Value, inner: Value, peepholes: Value, n_first: int) -> None:
        self.first, self.others = recurrent.T[:, :n_first], recurrent.T[:, n_first:]
        self.inner, self.peepholes = inner, peepholes


def _rnn(x: Value, w: Weights, states: Sequence[Value], functions: Sequence[Function]) -> Sequence[Value]:
    (h,), (f,) = states, functions
    return [f(x + h @ w.first)]


def _gru(node: Node, x: Value, w: Weights, states: Sequence[Value], functions: Sequence[Function]) -> Sequence[Value]:
    (h,), (f, g) = states, functions
    n = h.shape[-1]
    update, reset = np.split(f(x[:, : 2 * n] + h @ w.first), 2, axis=1)
    if node["linear_before_reset"]:
        inner = reset * (h @ w.others if w.inner is None else h @ w.others + w.inner)
    else:
        inner = (reset * h) @ w.others
    return [(number(h, 1) - update) * g(x[:, 2 * n :] + inner) + update * h]


def _lstm(node: Node, x: Value, w: Weights, states: Sequence[Value], functions: Sequence[Function]) -> Sequence[Value]:
    (h, c), (f, g, activated) = states, functions
    n = h.shape[-1]
    i, o, forget, new = np.split(x + h @ w.first, 4, axis=1)
    if w.peepholes is not None:
        i, forget = i + w.peepholes[:n] * c, forget + w.peepholes[2 * n :] * c
    i = f(i)
    forget = number(h, 1) - i if node["input_forget"] else f(forget)
    c = forget * c + i * g(new)
    if w.peepholes is not None:
        o = o + w.peepholes[n : 2 * n] * c
    return [f(o) * activated(c), c]


def _recurrent(node: Node, cell: Cell, usual: Sequence[str], n_gates: int, operands: Sequence[Value]) -> list[Value]:
    """The outputs of a network: all states of the first kind, and the last ones of each."""
    x, w, r, biases, lengths, *rest = [*operands, *[None] * 8][:8]
    initial, peepholes = rest[: len(_states(node))], rest[2]
    directions = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}.get(node["direction"])
    if directions is None:
        raise RefusedError(f"its direction is '{node['direction']}', and none of forward, reverse and bidirectional")
    if node["layout"] and x.ndim == 3:
        x, initial = np.swapaxes(x, 0, 1), [None if s is None else np.swapaxes(s, 0, 1) for s in initial]
    if x.ndim != 3:
        raise RefusedError(f"its input 'X' has the shape {list(x.shape)}, and three axes are due: steps, batch, features")
    n_steps, batch, size = x.shape
    hidden, n = node["hidden_size"] or r.shape[-1], len(directions)
    wide = n_gates * hidden
    due = {"W": (n, wide, size), "R": (n, wide, hidden), "B": (n, 2 * wide), "P": (n, 3 * hidden)}
    due |= dict.fromkeys(_states(node), (n, batch, hidden))
    given = {"W": w, "R": r, "B": biases, "P": peepholes, **dict(zip(_states(node), initial, strict=True))}
    for name, v in given.items():
        if v is not None and v.shape != due[name]:
            raise RefusedError(f"its input '{name}' has the shape {list(v.shape)}, and {list(due[name])} is due")
    if lengths is not None:
        known = node.importing.known(lengths)
        lengths = None if known is not None and (known == n_steps).all() else lengths
    functions = _activations(node, usual, n)
    runs = []
    for k, is_reverse in enumerate(directions):
        product, inner = x.reshape(n_steps * batch, size) @ w[k].T, None
        n_first = 2 * hidden if n_gates == 3 else wide
        if biases is not None:
            of_inputs, recurrent = np.split(biases[k], 2)
            if n_gates == 3 and node["linear_before_reset"]:
                recurrent, inner = np.split(recurrent, [n_first])
                recurrent = np.concatenate([recurrent, np.zeros(hidden, x.dtype)])
            product = product + (of_inputs + recurrent)  # which runtimes add as they multiply, before axes are taken apart
        product = product.reshape(n_steps, batch, wide)
        weights = Weights(r[k], inner, None if peepholes is None else peepholes[k], n_first)
        states = [filled(node, number(x, 0), (batch, hidden)) if s is None else s[k] for s in initial]
        runs.append(_run(node, cell, product, weights, states, functions[k], lengths, is_reverse))
    every = np.stack([ys for _, ys in runs], 1) if node.wants(0) else None
    last = [np.stack(column, 0) for column in zip(*[after for after, _ in runs], strict=True)]
    if node["layout"]:
        every = None if every is None else np.transpose(every, (2, 0, 1, 3))
        last = [np.swapaxes(s, 0, 1) for s in last]
    return [every, *last]


def _states(node: Node) -> Sequence[str]:
    """The names of the states that a step hands on."""
    return ("initial_h", "initial_c") if node.op_type == "LSTM" else ("initial_h",)


def _run(
    node: Node,
    cell: Cell,
    product: Value,
    weights: Weights,
    states: Sequence[Value],
    functions: Sequence[Function],
    lengths: Value,
    is_reverse: bool,
) -> tuple[list[Value], Value]:
    """The states after one direction, and those of the first kind after each step. Behind a sequence's end nothing changes."""
    n_steps = product.shape[0]

    def step(*arguments: Value) -> tuple[Sequence[Value], Sequence[Value]]:
        before, x = arguments[: len(states)], arguments[len(states)]
        after = cell(x, weights, before, functions)
        y = after[0]
        if lengths is not None:
            on = np.expand_dims(arguments[-1] < lengths, 1)
            y = np.where(on, y, number(y, 0))
            after = [np.where(on, new, old) for new, old in zip(after, before, strict=True)]
        return after, [y] if node.wants(0) else []

    named = list(zip(["h", "c"], states, strict=False))
    slices = [product] if lengths is None else [product, counted(node, n_steps)]
    after, ys = scan(node, step, named, slices, n_steps, is_reverse)
    return after, ys[0] if ys else None


def _activations(node: Node, usual: Sequence[str], n: int) -> list[list[Function]]:
    """The activations of each direction, in the order of the operator's formulas.

    All clip what they take but the one of an LSTM's cells, as onnxruntime has it, where the specification is silent.
    """
    names = node["activations"] if node.has("activations") else list(usual) * n
    if len(names) != len(usual) * n:
        raise RefusedError(f"has {len(names)} activations, and takes {len(usual) * n}")
    by_name = {name.lower(): name for name in PARAMETERS}
    alphas, betas = iter(node["activation_alpha"] or ()), iter(node["activation_beta"] or ())
    functions = list[Function]()
    for k, given in enumerate(names):
        name = by_name.get(given.lower())
        if name is None:
            raise RefusedError(f"its activation '{given}' is none of {', '.join(PARAMETERS)}")
        parameters = [next(it, v) for it, v in zip((alphas, betas), PARAMETERS[name], strict=False)]
        functions.append(partial(_activation, node, name, parameters, 0 if k % len(usual) == 2 else node["clip"]))
    return [functions[k * len(usual) : (k + 1) * len(usual)] for k in range(n)]


def _activation(node: Node, name: str, given: Sequence[float], clip: float | None, x: Value) -> Value:
    if clip:
        x = computed(node, "clamp", number(x, -clip), x, number(x, clip))
    if name == "Tanh":
        return np.tanh(x)
    if name == "Affine":
        return x * number(x, given[0]) + number(x, given[1])
    if name == "ScaledTanh":
        return np.tanh(x * number(x, given[1])) * number(x, given[0])
    parameters: dict[str, Any] = dict(zip(("alpha", "beta"), given, strict=False))
    return elementwise.OPERATORS[name](replace(node, op_type=name, attributes=parameters), x)


OPERATORS: Mapping[str, Operator] = {
    "GRU": lambda node, *operands: _recurrent(node, partial(_gru, node), ("Sigmoid", "Tanh"), 3, operands),
    "LSTM": lambda node, *operands: _recurrent(node, partial(_lstm, node), ("Sigmoid", "Tanh", "Tanh"), 4, operands),
    "RNN": lambda node, *operands: _recurrent(node, _rnn, ("Tanh",), 1, operands),
}
