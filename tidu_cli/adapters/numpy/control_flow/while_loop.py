"""Loops as long as a condition holds, and branches: `while_loop`, `cond` and `switch` with JAX's signatures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.control_flow.bodies import (
    Body,
    Carried,
    Leaf,
    Outside,
    begun,
    common_type,
    constant_of,
    converted,
    leaves,
    leaves_as,
    named,
    operands_of,
    parameters,
    plain,
    rebuilt,
    run,
    settled,
    type_of,
)
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.recorder import Recorder, distinct
from tidu_cli.errors import TiduError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.types import INTEGERS, TensorType


class Loop(Frozen, slots=False):
    """A while_loop; `carry` is what its parameter is called, and `name` is that of its function."""

    condition: Callable[[Any], Any]
    body: Callable[[Any], Any]
    init: Any
    carry: str
    name: str

    def run(self) -> Any:
        """What it carries out."""
        init = [x for _, x in leaves(self.init, self.carry)]
        if not init:
            raise BuildError("while_loop carries nothing, so that its condition could not change; give init_val arrays or numbers")
        return rebuilt(self.init, run(init, self._staged, self._called))

    def _step(self, carry: Sequence[Leaf]) -> list[Leaf]:
        return list(leaves_as(self.init, self.body(rebuilt(self.init, carry)), self.carry, self.name))

    def _goes_on(self, carry: Sequence[Leaf]) -> Any:
        answer = self.condition(rebuilt(self.init, carry))
        type_ = type_of(answer) if isinstance(answer, Array | bool | np.bool_ | np.ndarray) else None
        if type_ != TensorType("bool"):
            told = type_ if type_ is not None else f"a {type(answer).__name__}"
            raise BuildError(f"{named(self.condition, 'cond_fun')} gives {told}, but the condition of a loop is one bool, bool[]")
        return answer

    def _staged(self, recorder: Recorder) -> Sequence[Array]:
        init = list(leaves(self.init, self.carry))

        def record(carried: Sequence[Carried]) -> tuple[Body, Sequence[Leaf]]:
            body, given = begun(recorder, carried)
            with body.going_on():
                return body, self._step(given)

        carried, body, after = settled(init, record)
        with body.going_on():
            fitted = [c.fitted(x, self.name) for c, x in zip(carried, after, strict=True)]
            body.give(distinct([c.path for c in carried]), [body.array(x) for x in fitted])
        condition, given = begun(recorder, carried)
        with condition.going_on():
            condition.give(["goes_on"], [condition.array(self._goes_on(given))])
        cond_consts, body_consts = condition.outside, body.outside
        first = [constant_of(recorder, c, x) for c, (_, x) in zip(carried, init, strict=True)]
        return recorder.emit_all(
            "while",
            [*operands_of(recorder, cond_consts), *operands_of(recorder, body_consts), *first],
            cond_consts=len(cond_consts),
            body_consts=len(body_consts),
            condition=condition.closed(cond_consts),
            body=body.closed(body_consts),
        )

    def _called(self) -> Sequence[Any]:
        init = list(leaves(self.init, self.carry))
        types = [type_of(x) for _, x in init]
        carry = [plain(x, t) for (_, x), t in zip(init, types, strict=True)]
        if not self._goes_on(carry):
            with suppress(TiduError):  # what a step would make of numbers of Python's; it is not called where it may not be
                types = [x.type for x in self._staged(Recorder())]
            return [plain(x, t) for (_, x), t in zip(init, types, strict=True)]

        def first(carried: Sequence[Carried]) -> tuple[None, Sequence[Leaf]]:
            return None, self._step([x if c.weak else plain(x, c.type) for c, (_, x) in zip(carried, init, strict=True)])

        carried, _, after = settled(init, first)
        carry = [c.fitted(x, self.name) for c, x in zip(carried, after, strict=True)]
        while self._goes_on(carry):
            carry = [c.fitted(x, self.name) for c, x in zip(carried, self._step(carry), strict=True)]
        return carry


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """The loop `val = body_fun(val)` while `cond_fun(val)`: the last val, an array or nested ones, which keeps its types.

    It is differentiated in forward mode only, as how often it runs is not known before. Raises BuildError.
    """
    parameters(cond_fun, ("val",))
    (carry,) = parameters(body_fun, ("val",))
    return Loop(cond_fun, body_fun, init_val, carry, named(body_fun, "body_fun")).run()


def counted(lower: Any, upper: Any, body_fun: Callable[..., Any], init_val: Any) -> Any:
    """fori_loop with traced bounds."""
    i, carry = parameters(body_fun, ("i", "val"))

    def step(carried: Any) -> Any:
        number = carried[i]
        return {i: number + 1, carry: body_fun(_weak(number), carried[carry])}

    last = Loop(lambda carried: carried[i] < upper, step, {i: lower, carry: init_val}, "", named(body_fun, "body_fun")).run()
    return last[carry]


def _weak(x: Any) -> Any:
    """An integer as one of Python's."""
    return Array(x.recorder, x.value, x.type, int) if isinstance(x, Array) else int(x)


# Branches: `cond` and `switch` with JAX's signatures, of traced arrays and of NumPy's.


Branch = Callable[..., Any]


def cond(pred: Any, true_fun: Branch, false_fun: Branch, *operands: Any) -> Any:
    """true_fun(*operands) if pred, else false_fun(*operands); both give arrays of the same types, or nested ones.

    pred is a bool, or a number, which is true unless it is 0. Raises BuildError.
    """
    type_ = type_of(pred) if isinstance(pred, Array | np.ndarray | np.generic | bool | int | float | complex) else None
    if type_ is None or type_.shape:
        told = type_ if type_ is not None else f"a {type(pred).__name__}"
        raise BuildError(f"pred of cond is {told}, but it is one bool, bool[]; write .all() or .any(), or np.where(mask, a, b)")
    for function in (true_fun, false_fun):
        parameters(function, [f"operand {k}" for k in range(len(operands))])
    if not isinstance(pred, Array):
        return true_fun(*operands) if pred else false_fun(*operands)
    return _branched(pred if type_.dtype == "bool" else pred != 0, {"false_fun": false_fun, "true_fun": true_fun}, operands)


def switch(index: Any, branches: Sequence[Branch], *operands: Any) -> Any:
    """branches[index](*operands); all give arrays of the same types, or nested ones. index is clamped to the branches there are.

    Raises BuildError.
    """
    type_ = type_of(index) if isinstance(index, Array | np.ndarray | np.integer | int) else None
    if type_ is None or type_.shape or type_.dtype not in INTEGERS:
        told = type_ if type_ is not None else f"a {type(index).__name__}"
        raise BuildError(f"index of switch is {told}, but it chooses a branch: one integer; write int(x) or x.astype(int)")
    if not branches:
        raise BuildError("switch has no branches")
    for function in branches:
        parameters(function, [f"operand {k}" for k in range(len(operands))])
    if not isinstance(index, Array):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    return _branched(index, {f"branches[{k}]": function for k, function in enumerate(branches)}, operands)


def _branched(index: Array, functions: Mapping[str, Branch], operands: Sequence[Any]) -> Any:
    recorder: Recorder = index.recorder.open[-1]
    bodies, results = [Body(recorder) for _ in functions], []
    for body, function in zip(bodies, functions.values(), strict=True):
        with body.going_on():
            results.append(function(*[rebuilt(x, [body.copy(leaf) for _, leaf in leaves(x, "operand")]) for x in operands]))
    names = [named(function, default) for default, function in functions.items()]
    paths = [path for path, _ in leaves(results[0], "y")]
    each = [list(leaves_as(results[0], result, "y", name)) for result, name in zip(results, names, strict=True)]
    types = [common_type(path, list(zip(names, given, strict=True))) for path, *given in zip(paths, *each, strict=True)]
    if not paths:
        return results[0]
    outside: Outside = {}
    for body, given in zip(bodies, each, strict=True):
        with body.going_on():
            body.give(distinct(paths), [body.array(converted(x, t)) for x, t in zip(given, types, strict=True)])
        outside |= body.outside
    outputs = recorder.emit_all(
        "cond", [index, *operands_of(recorder, outside)], branches=tuple([body.closed(outside) for body in bodies])
    )
    return rebuilt(results[0], outputs)
