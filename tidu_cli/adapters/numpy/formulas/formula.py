"""Formulas: one expression, or assignments apart by `;`, to a graph. The text is parsed and walked, never executed."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arguments.data import named_with_data
from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.formulas.language import function_names
from tidu_cli.adapters.numpy.formulas.walker import MAX_DEPTH, FormulaError, Walker
from tidu_cli.adapters.numpy.formulas.words import syntax_fault
from tidu_cli.adapters.numpy.recorder import Recorder, chosen, default_output
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.limits import limits
from tidu_cli.port_data import Data, Given, Static

__all__ = ["FormulaError", "build_formula", "function_names"]

MAX_LENGTH = 10_000
"""The longest formula, in characters."""


def build_formula(
    text: str, inputs: Mapping[str, Given], *, name: str = "f", outputs: Sequence[str] = (), data: Data | None = None
) -> Document:
    """The graph of a formula, a document of one graph.

    `inputs` are the types of the names that it may use, in the order in which the graph declares them, or numbers and arrays that
    are constants; of other names `data` says the types. Assignments name outputs, of
    which `outputs` chooses; without one, the output is called `outputs[0]`, or as `default_output` says. Raises FormulaError with
    the column, and UnknownNameError for an output that is not assigned.
    """
    statements = _parsed(text)
    inputs = named_with_data(text, inputs, data)
    recorder = Recorder(most=limits().expansion)
    scope: dict[str, Any] = {key: recorder.input(Key(key), x) for key, x in inputs.items() if not isinstance(x, Static)}
    scope |= {key: _constant(key, x.value, recorder) for key, x in inputs.items() if isinstance(x, Static)}
    walker = Walker(text, recorder, scope)
    assigned: dict[str, Array] = {}
    for k, statement in enumerate(statements):
        if isinstance(statement, ast.Expr):
            if k < len(statements) - 1:
                walker.refuse(statement, "only the last part may go without a name; write NAME = ...")
            alone = default_output(inputs, () if assigned else outputs)
            assigned[alone] = walker.output(statement.value)
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            for target, value in _assigned(walker, statement.targets[0], statement.value):
                if target in inputs:
                    walker.refuse(statement, f"'{target}' is an input and cannot be assigned")
                scope[target] = assigned[target] = value
        else:
            walker.refuse(statement, _FORM)
    return recorder.document(name, chosen(assigned, outputs, "the formula"))


def _constant(key: str, value: Any, recorder: Recorder) -> Any:
    """A constant as formulas have them: a number, or an array."""
    if isinstance(value, bool | int | float | complex):
        return value
    array = np.asarray(value) if isinstance(value, list | np.ndarray) else None
    if array is None or array.dtype.kind not in "biufcV":
        raise FormulaError(f"formula: '{key}' is {value!r:.60}; constants of formulas are numbers, or lists of them")
    return recorder.constant(array)


_FORM = "a formula is an expression, or parts NAME = EXPRESSION with ';' between them"


def _assigned(walker: Walker, target: ast.expr, value: ast.expr) -> list[tuple[str, Array]]:
    """The names of `a = ...` or `a, b = ...`, and what they are."""
    if isinstance(target, ast.Name):
        return [(target.id, walker.output(value))]
    if not isinstance(target, ast.Tuple | ast.List):
        walker.refuse(target, _FORM)
    names = []
    for part in target.elts:
        if not isinstance(part, ast.Name):
            walker.refuse(part, "the parts of a, b = ... are names")
        if part.id in names:
            walker.refuse(part, f"'{part.id}' stands twice")
        names.append(part.id)
    return list(zip(names, walker.several(value, len(names)), strict=True))


def _parsed(text: str) -> list[ast.stmt]:
    if len(text) > MAX_LENGTH:
        raise FormulaError(f"formula: has {len(text)} characters; the most are {MAX_LENGTH}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            statements = ast.parse(text.strip()).body
    except SyntaxError as error:
        raise FormulaError(f"formula, column {error.offset or 1}: {syntax_fault(text, error)}") from None
    except (RecursionError, MemoryError):
        raise FormulaError(f"formula: nests too deeply; the most is {MAX_DEPTH} levels") from None
    except ValueError as error:  # a NUL, half of a surrogate pair, an integer of thousands of digits
        raise FormulaError(f"formula: {error}") from None
    if not statements:
        raise FormulaError("formula: is empty; write an expression, such as 'sum(x * x)'")
    return statements
