"""Walking a formula's syntax tree to arrays. Nothing of it is executed: each kind of node has a method here, or is refused."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from tidu_cli.adapters.numpy.arrays.array import Array, Record, dtype_of
from tidu_cli.adapters.numpy.arrays.operands import arrays_in
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.formulas.language import (
    CONSTANTS,
    CREATION,
    OPTIONS_REFUSED,
    Several,
    function_named,
    function_names,
    instead_of,
    instead_of_name,
    recorded,
)
from tidu_cli.adapters.numpy.numpy.elementwise.ufuncs import apply_operator, apply_ufunc
from tidu_cli.adapters.numpy.numpy.functions import places_of_out
from tidu_cli.adapters.numpy.recorder import Recorder
from tidu_cli.errors import Remedy, TiduError, did_you_mean
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import DTYPES, ITEMSIZE

MAX_DEPTH = 60
"""How deep a formula may nest. Chains of operators, such as a + b + c, do not nest."""

_UNARY = {ast.USub: "negative", ast.UAdd: "positive", ast.Invert: "invert"}
_OPERATORS: Mapping[type[ast.AST], tuple[str, Callable[[Any, Any], Any] | None]] = {
    ast.Add: ("add", operator.add), ast.Sub: ("subtract", operator.sub), ast.Mult: ("multiply", operator.mul),
    ast.Div: ("divide", operator.truediv), ast.FloorDiv: ("floor_divide", operator.floordiv), ast.Mod: ("remainder", operator.mod),
    ast.BitAnd: ("bitwise_and", operator.and_), ast.BitOr: ("bitwise_or", operator.or_), ast.BitXor: ("bitwise_xor", operator.xor),
    ast.Pow: ("power", None), ast.MatMult: ("matmul", None), ast.LShift: ("left_shift", None), ast.RShift: ("right_shift", None),
    ast.Lt: ("less", operator.lt), ast.LtE: ("less_equal", operator.le), ast.Gt: ("greater", operator.gt),
    ast.GtE: ("greater_equal", operator.ge), ast.Eq: ("equal", operator.eq), ast.NotEq: ("not_equal", operator.ne),
}  # fmt: skip
"""Of each operator the ufunc, and what Python computes of plain numbers, kept small by `_small`; None where that is not so."""

_TAKES_TEXT = frozenset({"einsum", "indexing", "ord", "mode", "side", "method", "unit"})
"""The function whose first argument, and the options whose values, are text."""
_OF_TEXT = frozenset({"datetime64", "timedelta64"})
"""Functions whose arguments may all be text."""

OF_TWO: Mapping[str, str] = {
    "max": "maximum", "amax": "maximum", "nanmax": "fmax", "min": "minimum", "amin": "minimum", "nanmin": "fmin",
    "any": "logical_or", "all": "logical_and", "logsumexp": "logaddexp",
}  # fmt: skip
"""Reductions whose names are those of operations on two numbers, too, in mathematics and in Python, and what the latter is here."""

ALONG_AXES = frozenset({"sum", "mean", "prod", "std", "var", "median", "cumsum", "cumprod", "average"})
"""Functions of the elements of one array, whose second argument is an axis."""

Number = bool | int | float | complex
_LARGEST = 2**64


class FormulaError(BuildError):
    """A formula says what formulas cannot say."""


class Walker(ast.NodeVisitor):
    """Evaluates the nodes of a syntax tree to Arrays, and where no Array takes part to numbers."""

    def __init__(self, text: str, recorder: Recorder, scope: Mapping[str, Any]) -> None:
        self.text = text
        self.offset = len(text) - len(text.lstrip())
        self.recorder = recorder
        self.scope = scope
        self.depth = 0

    def refuse(self, node: Any, message: str) -> NoReturn:
        """Raise FormulaError at the place of a node."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        # ast counts bytes.
        lines = self.text.strip().split("\n")
        before = lines[line - 1].encode(errors="replace")[:column].decode(errors="replace") if line <= len(lines) else ""
        place = f"column {len(before) + 1 + (self.offset if line == 1 else 0)}"
        raise FormulaError(f"formula, {place if line == 1 else f'line {line}, {place}'}: {message}")

    def output(self, node: ast.expr) -> Array:
        """The value of an expression as an Array."""
        return self.recorded(node, self.value(node))

    def several(self, node: ast.expr, count: int) -> list[Array]:
        """The `count` arrays that an expression gives: the results of a function, the parts of a tuple, or the rows of an array."""
        value = self.value(node, several=True)
        if isinstance(value, Record):
            value = self.checked(node, "it", lambda: list(value))
        if isinstance(value, int | float | complex) or (isinstance(value, Array) and not value.ndim):
            self.refuse(node, f"gives one number and not {count} arrays")
        parts = value if isinstance(value, list | tuple) else range(value.shape[0] if isinstance(value, Array) else 0)
        if len(parts) != count:
            self.refuse(node, f"gives {len(parts)} arrays for {count} names")
        rows = [value[k] for k in parts] if isinstance(value, Array) else parts
        return [self.recorded(node, part) for part in rows]

    def recorded(self, node: ast.expr, value: Any) -> Array:
        """A value as an Array."""
        if isinstance(value, Record):
            self.refuse(node, str(value))
        array: Array = self.checked(node, "it", lambda: recorded(self.recorder, value))
        return array

    def value(self, node: ast.expr, *, several: bool = False) -> Any:
        """The value of an expression: an Array, a number, a list or tuple, or, where they are wanted, `Several` results."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.refuse(node, f"nests too deeply; the most is {MAX_DEPTH} levels")
        name = type(node).__name__
        visit = getattr(self, f"visit_{name}", None)
        if visit is None:
            self.refuse(node, _REFUSED.get(type(node)) or f"{name} has no place in a formula")
        value = visit(node)
        self.depth -= 1
        if isinstance(value, Several) and not several:
            self.refuse(node, f"gives {len(value)} arrays; name them, as in a, b = ..., or take one: (...)[0]")
        return value

    def checked(self, node: ast.AST, what: str, compute: Callable[[], Any]) -> Any:
        """What `compute` gives. Whatever it raises is told with the place of the node."""
        try:
            return compute()
        except FormulaError:
            raise
        except Exception as error:
            message = " ".join(str(error).split()) or type(error).__name__
            if isinstance(error, TypeError) and not isinstance(error, TiduError):
                message = message.replace("<lambda>()", f"{what}()")
            ours = isinstance(error, TiduError | IndexError) and not isinstance(error, ValueError)
            self.refuse(node, message if ours else f"{what}: {message}")

    # One method per kind of node.

    def visit_Constant(self, node: ast.Constant) -> Any:
        if node.value is Ellipsis or node.value is None:
            return node.value
        if isinstance(node.value, Number):
            if isinstance(node.value, float | complex) and abs(node.value) == math.inf:
                written = str(ast.get_source_segment(self.text.strip(), node))[:40]
                self.refuse(node, f"the number {written} is beyond every float; write inf")
            return self._small(node, node.value)
        text = "text has no place in a formula but as einsum's subscripts and dtype="
        return self.refuse(node, text if isinstance(node.value, str) else "bytes have no place in a formula")

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id in self.scope:
            return self.scope[node.id]
        if node.id in CONSTANTS:
            return CONSTANTS[node.id]
        if node.id in function_names():
            self.refuse(node, f"'{node.id}' is a function; write {node.id}(...)")
        name = node.id[:40]
        way = Remedy(name, f"{name}:TYPE", flag="-i", python=f"{name}='f64[3]'")
        more = instead_of_name(node.id, [*self.scope, *CONSTANTS]) or f"; give it a type with {way}"
        return self.refuse(node, f"unknown name '{node.id[:60]}'{more}")

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        # A run of signs is a chain, too, but nobody needs a long one.
        operand = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            self.refuse(node, "'not' has no place in a formula; write ~ for arrays of bools")
        name = _UNARY[type(node.op)]
        if not isinstance(operand, Array):
            if isinstance(operand, OpenSize) and name != "invert":
                return -operand if name == "negative" else operand  # type: ignore[operator]
            if not isinstance(operand, Number):
                self.refuse(node, f"{name} takes numbers and arrays")
            if name == "invert" and not isinstance(operand, int):
                self.refuse(node, "~ takes integers and bools")
            return self._small(node, -operand if name == "negative" else +operand if name == "positive" else ~int(operand.real))
        return self.checked(node, name, lambda: apply_ufunc(name, operand))

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        of = node.left.id if isinstance(node.left, ast.Name) and node.left.id not in self.scope else ""
        if isinstance(node.op, ast.BitXor | ast.Pow) and function_named(of):
            self.refuse(node, f"'{of}' is a function; write {of}(x)**2 for the square of {of}(x)")
        # The left spine of a chain is walked and not recursed into.
        spine: list[ast.BinOp] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp):
            spine.append(left)
            left = left.left
        value = self.value(left)
        for step in reversed(spine):
            value = self._combined(step, step.op, value, self.value(step.right))
        return value

    def visit_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) != 1:
            self.refuse(node, "comparisons do not chain; write (a < b) & (b < c)")
        if type(node.ops[0]) not in _OPERATORS:
            self.refuse(node, "'in' and 'is' have no place in a formula")
        return self._combined(node, node.ops[0], self.value(node.left), self.value(node.comparators[0]))

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        operand = self.value(node.value)
        if isinstance(operand, Record):
            return self.checked(node, "field", lambda: operand[node.attr])
        if node.attr not in ("T", "shape", "size"):
            self.refuse(
                node, "attributes other than .T, .shape and .size have no place in a formula; functions are called, as in sum(x)"
            )
        array = self.recorded(node, operand)
        if node.attr != "T":
            return getattr(array, node.attr)
        return array.permuted(range(array.ndim)[::-1])

    def visit_List(self, node: ast.List) -> Any:
        return [self.value(item) for item in node.elts]

    def visit_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.value(item) for item in node.elts)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id not in self.scope and function_named(node.value.id.lower()):
            self.refuse(node, f"functions are called with parentheses; write {node.value.id.lower()}(...)")
        operand = self.value(node.value, several=True)
        index = self._index(node.slice)
        if isinstance(operand, Record):
            return self.checked(node, "field", lambda: operand[index])
        if isinstance(operand, Several) or (isinstance(operand, tuple) and isinstance(node.value, ast.Attribute)):
            if not isinstance(index, int) or not -len(operand) <= index < len(operand):
                some = f"of {len(operand)} arrays" if isinstance(operand, Several) else f"a shape of {len(operand)} sizes, of which"
                self.refuse(node, f"{some} one is taken by an integer")
            return operand[index]
        if any(isinstance(i, float | complex) for i in (index if isinstance(index, tuple) else (index,))):
            self.refuse(node, "indices are integers")
        array = self.recorded(node, operand)
        return self.checked(node, "index", lambda: array.recorder.numpy["indexed"](array, index))

    def visit_Call(self, node: ast.Call) -> Any:
        if not isinstance(node.func, ast.Name):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            dotted = f"; write {name}(...)" if function_named(name) else instead_of(name, ()) if name else "; write * for a product"
            self.refuse(node, f"only functions can be called, by their names{dotted}")
        name = node.func.id
        function = function_named(name)
        if name == "log" and len(node.args) == 2:
            self.refuse(node, "log is the natural logarithm of one argument; write log(x) / log(b) for one to the base b")
        if name in ("arctan", "atan") and len(node.args) == 2:
            self.refuse(node, f"{name} takes one argument; write {name}2(y, x) for the angle of a point")
        if function is None:
            self.refuse(node, f"unknown function '{name[:60]}'{instead_of(name, function_names())}")
        args, options = self._arguments(node, name)
        if name in ALONG_AXES and len(args) > 1 and isinstance(args[1], Array):
            along = "is of the elements of one array, and its second argument is an axis"
            self.refuse(node, f"{name} {along}; write {name}(stack([x, y]), axis=0)")
        if hasattr(function, "__wrapped__") and any(place < len(args) for place in places_of_out(name).values()):
            self.refuse(node, "out has no place in a formula")
        if name in OF_TWO and len(args) > 1:
            self._refuse_two(node, name, args[1])
        if name in CREATION:
            return self.checked(node, name, lambda: CREATION[name](self.recorder, *args, **options))
        if not arrays_in([*args, *options.values()]):
            at = next((k for k, a in enumerate(args) if isinstance(a, Number | OpenSize | list | tuple)), None)
            if at is None:
                self.refuse(node, f"{name} takes an array or a number")
            args[at] = self.recorded(node, args[at])
        result = self.checked(node, name, lambda: function(*args, **options))
        if isinstance(result, list | tuple) and all(isinstance(x, Array) for x in result):
            return Several(result)
        if not isinstance(result, Array) and name != "size":
            self.refuse(node, f"{name} gives no array here")
        return result

    def _refuse_two(self, node: ast.Call, name: str, second: Any) -> NoReturn:
        """max(x, 0) is the greatest element along axis 0 to NumPy, and the greater of x and 0 to readers of mathematics."""
        texts = [ast.unparse(a) for a in node.args[:2]]
        x, y = (text if len(text) <= 40 else letter for text, letter in zip(texts, "xy", strict=True))
        if isinstance(second, int | list | tuple | None) and not arrays_in([second]):
            both = f"write {OF_TWO[name]}({x}, {y}) elementwise, or {name}({x}, axis={y}) along an axis"
            self.refuse(node, f"{name}({x}, {y}) can be read in two ways; {both}")
        self.refuse(node, f"{name} is of the elements of one array; write {OF_TWO[name]}({x}, {y})")

    # Their parts.

    def _arguments(self, node: ast.Call, name: str) -> tuple[list[Any], dict[str, Any]]:
        args = [
            self._dtype(a) if (name, k) == ("convert", 1) else self._argument(a, name if k == 0 or name in _OF_TEXT else "")
            for k, a in enumerate(node.args)
        ]
        options: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                self.refuse(keyword, "'**' has no place in a formula")
            if keyword.arg in OPTIONS_REFUSED:
                self.refuse(keyword.value, f"{keyword.arg}= has no place in a formula")
            is_dtype = keyword.arg == "dtype"
            options[keyword.arg] = self._dtype(keyword.value) if is_dtype else self._argument(keyword.value, keyword.arg)
        return args, options

    def _argument(self, node: ast.expr, where: str) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and where in _TAKES_TEXT | _OF_TEXT:
            return node.value[:400]
        if isinstance(node, ast.Name) and node.id in ITEMSIZE and node.id not in self.scope:
            return dtype_of(node.id)
        return self.value(node)

    def _dtype(self, node: ast.expr) -> Any:
        name = node.id if isinstance(node, ast.Name) else node.value if isinstance(node, ast.Constant) else None
        if not isinstance(name, str) or name not in DTYPES:
            hint = did_you_mean(name, list(DTYPES)) if isinstance(name, str) else ""
            self.refuse(node, f"not a dtype{hint or '; they are ' + ', '.join(DTYPES)}")
        return dtype_of(name)

    def _index(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Tuple):
            return tuple(self._index(item) for item in node.elts)
        if isinstance(node, ast.Slice):
            ends = [None if end is None else self.value(end) for end in (node.lower, node.upper, node.step)]
            if any(not (end is None or (isinstance(end, int | OpenSize) and not isinstance(end, bool))) for end in ends):
                self.refuse(node, "slices go from integer to integer")
            return slice(*ends)
        return self.value(node)

    def _combined(self, node: ast.expr, operation: ast.AST, left: Any, right: Any) -> Any:
        if isinstance(operation, ast.BitXor) and not all(map(_of_bits, (left, right))):
            self.refuse(node, "^ is a bitwise xor, of integers and bools; write ** for a power")
        name, of_numbers = _OPERATORS[type(operation)]
        for side in (left, right):
            if not isinstance(side, Array | Number | OpenSize | list | tuple):
                self.refuse(node, f"{name} takes numbers and arrays")
        sides = (left, right)
        if any(isinstance(x, OpenSize) for x in sides) and all(isinstance(x, Number | OpenSize) for x in sides):
            of_sizes = operator.pow if name == "power" else of_numbers
            if of_sizes is None:
                self.refuse(node, f"{name} of two numbers has no place in a formula")
            return self.checked(node, name, lambda: of_sizes(left, right))
        if not (isinstance(left, Number) and isinstance(right, Number)):
            if not arrays_in([left, right]):
                left = self.recorded(node, left)
            return self.checked(node, name, lambda: apply_operator(name, left, right))
        if name == "power":
            return self._small(node, self._number_power(node, left, right))
        if of_numbers is None:
            self.refuse(node, f"{name} of two numbers has no place in a formula")
        return self._small(node, self.checked(node, name, lambda: of_numbers(left, right)))

    def _number_power(self, node: ast.AST, base: Any, exponent: Any) -> Any:
        if isinstance(base, int) and isinstance(exponent, int) and exponent > 0 and base.bit_length() * exponent > 128:
            if abs(base) > 1:
                self.refuse(node, "a number past 2**64; write it as a float, such as 1e30")
            exponent = exponent % 2 + 2  # of 0, 1 and -1
        return self.checked(node, "power", lambda: base**exponent)

    def _small(self, node: ast.AST, value: Any) -> Any:
        if isinstance(value, int) and abs(value) >= _LARGEST:
            self.refuse(node, "a number past 2**64; write it as a float, such as 1e30")
        return value


_REFUSED: Mapping[type[ast.AST], str] = {
    ast.BoolOp: "'and' and 'or' have no place in a formula; write & and | with parentheses: (a > 0) & (b > 0)",
    ast.IfExp: "'if' has no place in a formula; write where(condition, a, b)",
    ast.Starred: "'*' before an argument has no place in a formula",
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), "a comprehension has no place in a formula"),
    **dict.fromkeys((ast.Yield, ast.YieldFrom), "'yield' has no place in a formula"),
    **{node: f"{words} has no place in a formula" for node, words in (
        (ast.Lambda, "a lambda"), (ast.Dict, "a dict"), (ast.Set, "a set"), (ast.JoinedStr, "text"), (ast.NamedExpr, "':='"),
        (ast.Await, "'await'"), (ast.Slice, "':'"),
    )},
}  # fmt: skip
"""Why a kind of node is refused."""


def _of_bits(operand: Any) -> bool:
    return not operand.type.inexact if isinstance(operand, Array) else not isinstance(operand, float | complex)
