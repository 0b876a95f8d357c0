"""Graphs of numbers as formulas: the inverse of reading them.

What stands for a node is tried: a text is taken if reading it gives a node of this case and no other. Expressions are made as
Python's syntax trees, which know where brackets belong.
"""

from __future__ import annotations

import ast
import copy
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Any

from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.formulas.formula import MAX_LENGTH, build_formula
from tidu_cli.adapters.numpy.formulas.language import CONSTANTS, function_names
from tidu_cli.adapters.numpy.recorder import default_output
from tidu_cli.errors import TiduError
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Case, Document, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import Literal, literal_to_numbers
from tidu_cli.graph.types import COMPLEXES, TensorType, Type

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

    Derivatives' keys become names: x@-1 is x_ct1, y@1 is y_t1. Raises BuildError for what is no graph of numbers without axes,
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
        found = _expression(graph, node, case, [values[x] for x in operands])
        depth = 1 + max((depths[x] for x in operands), default=0)
        if (reads[len(values)] > 1 and not isinstance(found, ast.Constant | ast.Name | ast.UnaryOp)) or depth > _DEEP:
            name = of_value.get(len(values)) or next(fresh)
            said.add(name)
            yield f"{name} = {ast.unparse(found)}"
            found, depth = ast.Name(name), 0
        values.append(found)
        depths.append(depth)
    alone = len(keys) == 1 and keys[0] == default_output([str(i.key) for i in graph.inputs]) and not said
    for name, output in zip(keys, graph.outputs, strict=True):
        if name not in said:
            expression = "0.0" if output.value is None else ast.unparse(values[output.value])
            yield expression if alone else f"{name} = {expression}"


def _names(keys: Sequence[Key], others: Sequence[str]) -> list[str]:
    """Names for keys that differ from one another, from others, and from those of functions."""
    reserved = {*function_names(), *CONSTANTS, *others}
    found: list[str] = []
    for key in keys:
        steps = "".join(f"_t{step}" if step > 0 else f"_ct{-step}" for step in key.path)
        name = re.sub(r"\W", "_", key.name) + steps
        if not name.isidentifier() or name in reserved:
            name = f"{name}_" if name.isidentifier() else f"_{name}"
        while name in found or name in reserved:
            name += "_"
        found.append(name)
    return found


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
    template = copy.deepcopy(ast.parse(text, mode="eval").body)
    return _Filled(dict(zip("abcdef", operands, strict=False))).visit(template)  # type: ignore[no-any-return]


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
        raise BuildError(f"a constant of {literal.type} is no number without axes; {_INSTEAD}")
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
