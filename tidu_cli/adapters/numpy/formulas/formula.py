"""Formulas: one expression, or assignments apart by `;`, to a graph. The text is parsed and walked, never executed."""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.data import named_with_data, with_numbers
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.formulas.language import CONSTANTS, function_names, syntax_fault
from tidu_cli.adapters.numpy.formulas.walker import MAX_DEPTH, FormulaError, Walker
from tidu_cli.adapters.numpy.recorder import Recorder, chosen, default_output, sizes_of
from tidu_cli.errors import TiduError
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Case, Document, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import Literal, literal_to_numbers
from tidu_cli.graph.types import COMPLEXES, TensorType, Type
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
    are constants; of other names `data` says the types, and the rest are numbers. Assignments name outputs, of
    which `outputs` chooses; without one, the output is called `outputs[0]`, or as `default_output` says. Raises FormulaError with
    the column, and UnknownNameError for an output that is not assigned.
    """
    statements = _parsed(text)
    inputs = with_numbers(text, named_with_data(text, inputs, data))
    recorder = Recorder(most=limits().expansion)
    scope: dict[str, Any] = {key: recorder.input(Key(key), x) for key, x in inputs.items() if not isinstance(x, Static)}
    scope |= {key: _constant(key, x.value, recorder) for key, x in inputs.items() if isinstance(x, Static)}
    with sizes_of(recorder):
        assigned = _assignments(Walker(text, recorder, scope), scope, statements, inputs, outputs)
    return recorder.document(name, chosen(assigned, outputs, "the formula"))


def _assignments(
    walker: Walker, scope: dict[str, Any], statements: Sequence[ast.stmt], inputs: Mapping[str, Given], outputs: Sequence[str]
) -> dict[str, Array]:
    """What the parts of a formula are, by their names."""
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
    return assigned


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


# Graphs of numbers as formulas: the inverse of reading them.
#
# What stands for a node is tried: a text is taken if reading it gives a node of this case and no other. Expressions are made as
# Python's syntax trees, which know where brackets belong.


_INSTEAD = "without --formula the graph is listed"

_DEEP = 40
"""Expressions that nest deeper are parted, by a name for what is within."""

_OPERATORS: Mapping[str, str] = {
    "add": "a + b", "sub": "a - b", "mul": "a * b", "div": "a / b", "pow": "a ** b", "neg": "-a", "eq": "a == b", "ne": "a != b",
    "lt": "a < b", "le": "a <= b", "gt": "a > b", "ge": "a >= b", "and": "a & b", "or": "a | b", "xor": "a ^ b", "not": "~a",
    "abs": "abs(a)", "max": "maximum(a, b)", "min": "minimum(a, b)", "select_n": "where(a, c, b)", "logistic": "sigmoid(a)",
    "rem": "fmod(a, b)",
}  # fmt: skip


def formula_of(document: Document) -> str:
    """The head as `a = ...; y = ...`, or one expression, which `build_formula` reads as a graph of the same values.

    Derivatives' keys become names: x@-1 is x_ct1, y@1 is y_t1. Raises BuildError for a graph that has arrays with axes,
    reads other graphs, or is longer than formulas may be.
    """
    graph = document.head
    if len(graph.external) or document.bindings:
        raise BuildError(f"graph '{graph.name}' reads other graphs, which a formula cannot; tidu materialize makes it one graph")
    ports: list[Input | Output] = [*graph.inputs, *graph.outputs]
    for port in ports:
        if not isinstance(port.type, TensorType) or port.type.shape:
            raise BuildError(f"'{port.key}' is {port.type}; formulas are written of numbers without axes; {_INSTEAD}")
    text = "; ".join(_statements(graph))
    if len(text) > MAX_LENGTH:
        raise BuildError(f"the formula has {len(text):,} characters, and tidu build reads {MAX_LENGTH:,}; {_INSTEAD}")
    return text


def _statements(graph: Graph) -> Iterator[str]:
    reads = Counter([*graph.args, *(o.value for o in graph.outputs if o.value is not None)])
    names = _names([i.key for i in graph.inputs], ())
    keys = _names([o.key for o in graph.outputs], names)
    of_value = {o.value: key for o, key in zip(graph.outputs, keys, strict=True) if o.value is not None}
    fresh = (name for name in (f"v{k}" for k in count(1)) if name not in (*names, *keys))
    values: list[ast.expr] = [ast.Name(name) for name in names]
    depths = [0] * len(values)
    said: set[str] = set()
    for node in range(graph.n_nodes):
        case, operands = graph.case(node), graph.operands(node)
        if len(case.results) != 1:
            raise BuildError(f"{graph.describe(node)} has {len(case.results)} results, which no formula has")
        tree = _expression(graph, node, case, [values[x] for x in operands])
        depth = 1 + max((depths[x] for x in operands), default=0)
        if (reads[len(values)] > 1 and not isinstance(tree, ast.Constant | ast.Name | ast.UnaryOp)) or depth > _DEEP:
            name = of_value.get(len(values)) or next(fresh)
            said.add(name)
            yield f"{name} = {ast.unparse(tree)}"
            tree, depth = ast.Name(name), 0
        values.append(tree)
        depths.append(depth)
    alone = len(keys) == 1 and keys[0] == default_output([str(i.key) for i in graph.inputs]) and not said
    for name, output in zip(keys, graph.outputs, strict=True):
        if name not in said:
            expression = "0.0" if output.value is None else ast.unparse(values[output.value])
            yield expression if alone else f"{name} = {expression}"


def _names(keys: Sequence[Key], others: Sequence[str]) -> list[str]:
    """Names for keys that differ from one another, from others, and from those of functions."""
    reserved = {*function_names(), *CONSTANTS, *others}
    names: list[str] = []
    for key in keys:
        steps = "".join(f"_t{step}" if step > 0 else f"_ct{-step}" for step in key.path)
        name = re.sub(r"\W", "_", key.name) + steps
        if not name.isidentifier() or name in reserved:
            name = f"{name}_" if name.isidentifier() else f"_{name}"
        while name in names or name in reserved:
            name += "_"
        names.append(name)
    return names


def _expression(graph: Graph, node: int, case: Case, operands: Sequence[ast.expr]) -> ast.expr:
    if case.op == "constant":
        return _number(case.attrs.value)  # type: ignore[attr-defined]
    if case.op == "convert_element_type" and isinstance(operands[0], ast.Constant | ast.UnaryOp):
        exact = _exact(operands[0], case.results[0])
        if exact is not None:
            return exact
    text = _text(replace(case, mask=None))
    if text is None:
        raise BuildError(f"{graph.describe(node)} has no form in formulas; {_INSTEAD}")
    filled = _Filled(dict(zip("abcdef", operands, strict=False)))
    return filled.visit(ast.parse(text, mode="eval").body)  # type: ignore[no-any-return]


def _exact(number: ast.expr, type_: Type) -> ast.expr | None:
    """A whole number as a float."""
    if isinstance(number, ast.UnaryOp) and isinstance(number.op, ast.USub):
        below = _exact(number.operand, type_)
        return None if below is None else ast.UnaryOp(ast.USub(), below)
    value = number.value if isinstance(number, ast.Constant) else None
    exact = type(value) is int and abs(value) < 1 << 24 and isinstance(type_, TensorType) and type_.dtype in ("f64", "f32")
    return ast.Constant(float(value)) if exact and isinstance(value, int) else None


class _Filled(ast.NodeTransformer):
    """Operands in place of a, b, c."""

    def __init__(self, operands: Mapping[str, ast.expr]) -> None:
        self._operands = operands

    def visit_Call(self, node: ast.Call) -> ast.expr:
        return ast.Call(node.func, [self.visit(x) for x in node.args], [])  # the function's name stays

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._operands.get(node.id, node)


def _number(literal: Literal) -> ast.expr:
    if literal.type.shape:
        raise BuildError(f"a constant of {literal.type} is not a single number; {_INSTEAD}")
    numbers = literal_to_numbers(literal)
    if literal.type.dtype in COMPLEXES:
        return ast.BinOp(_real(str(numbers[0])), ast.Add(), ast.BinOp(_real(str(numbers[1])), ast.Mult(), ast.Constant(1j)))
    return _real(numbers[0])


def _real(number: Any) -> ast.expr:
    value = float(number) if isinstance(number, str) else number
    if isinstance(value, float) and not math.isfinite(value):
        name = ast.Name("nan" if math.isnan(value) else "inf")
        return ast.UnaryOp(ast.USub(), name) if value < 0 else name
    if not isinstance(value, bool) and math.copysign(1, value) < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)


@lru_cache(maxsize=4096)
def _text(case: Case) -> str | None:
    """What reads as a node of this case of a, b, c."""
    letters = "abcdef"[: len(case.operands)]
    arguments = ", ".join(letters)
    first = [_OPERATORS[case.op]] if case.op in _OPERATORS else []
    if case.op == "integer_pow":
        first.append(f"a ** {case.attrs.y}")  # type: ignore[attr-defined]
    if case.op == "convert_element_type":
        first.append(f"convert(a, {case.results[0].dtype})")  # type: ignore[union-attr]
    for text in (*first, f"{case.op}({arguments})", *(f"{name}({arguments})" for name in function_names())):
        try:
            graph = build_formula(text, dict(zip(letters, case.operands, strict=True))).head  # type: ignore[arg-type]
        except (TiduError, TypeError, ValueError):
            continue  # it is another function, of other operands
        if graph.n_nodes == 1 and graph.case(0) == case and list(graph.operands(0)) == list(range(len(letters))):
            return text
    return None
