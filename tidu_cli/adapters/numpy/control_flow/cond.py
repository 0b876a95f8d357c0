"""Branches: `cond` and `switch` with JAX's signatures, of traced arrays and of NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.control_flow.bodies import Body, Outside, named, operands_of, parameters
from tidu_cli.adapters.numpy.control_flow.carrying import common_type, converted, type_of
from tidu_cli.adapters.numpy.control_flow.trees import leaves, leaves_as, rebuilt
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.recorder import Recorder, distinct
from tidu_cli.graph.types import INTEGERS

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
    found = recorder.emit_all(
        "cond", [index, *operands_of(recorder, outside)], branches=tuple([body.closed(outside) for body in bodies])
    )
    return rebuilt(results[0], found)
