"""Formulas: one expression, or assignments apart by `;`, to a graph. The text is parsed and walked, and nothing of it is executed.

Names, operators and functions are looked up in the tables of this module; whatever is not there is refused with its column.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from tidu_cli.build.array import Array, lift
from tidu_cli.build.elementwise import SPECIAL, UFUNCS, apply_ufunc
from tidu_cli.build.functions import ALIASES, FUNCTIONS
from tidu_cli.build.recorder import Recorder, arrays_in
from tidu_cli.build.trouble import BuildError
from tidu_cli.errors import TiduError, UnknownNameError, did_you_mean
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import ITEMSIZE, TensorType
from tidu_cli.primitives.structural import numpy_dtype

MAX_LENGTH = 10_000
"""The longest formula, in characters."""

MAX_DEPTH = 60
"""How deep a formula may nest. Chains of operators, such as a + b + c, do not nest."""

DEFAULT_OUTPUT = "y"
"""The name of the output of a formula without assignment, and of a function that returns one array."""

CONSTANTS: Mapping[str, Any] = {"pi": np.pi, "e": np.e, "inf": np.inf, "nan": np.nan, "True": True, "False": False}
"""Names that formulas may use besides those of inputs."""

_OTHER_NAMES = {
    "sigmoid": "expit", "logistic": "expit", "erf_inv": "erfinv", "lgamma": "gammaln", "digamma": "psi",
    "igamma": "gammainc", "igammac": "gammaincc", "expit": "expit",
}  # fmt: skip
_HIDDEN = frozenset({"shape", "ndim", "size", "result_type", "iscomplexobj", "isrealobj", "asarray", "copy", "empty_like", "divmod",
                     "broadcast_arrays", "meshgrid", "unstack", "split", "array_split", "polyval", "astype"})  # fmt: skip
_UNARY = {ast.USub: "negative", ast.UAdd: "positive", ast.Invert: "invert"}
_BINARY = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder", ast.Pow: "power", ast.MatMult: "matmul", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor", ast.LShift: "left_shift", ast.RShift: "right_shift",
}  # fmt: skip
_COMPARE = {
    ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal", ast.Eq: "equal", ast.NotEq: "not_equal",
}  # fmt: skip
_NUMBERS: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b, "divide": lambda a, b: a / b,
    "floor_divide": lambda a, b: a // b, "remainder": lambda a, b: a % b, "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b, "bitwise_xor": lambda a, b: a ^ b, "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b, "greater": lambda a, b: a > b, "greater_equal": lambda a, b: a >= b,
    "equal": lambda a, b: a == b, "not_equal": lambda a, b: a != b,
}  # fmt: skip
"""Arithmetic of plain numbers, as Python has it, kept small by `_small`."""

Number = bool | int | float | complex
_LARGEST = 2**64


class FormulaError(BuildError):
    """A formula says what formulas cannot say."""


def function_names() -> list[str]:
    """The functions that formulas may call."""
    plain = {name for name in FUNCTIONS if "." not in name and name not in _HIDDEN}
    return sorted(plain | set(ALIASES) | set(SPECIAL) | set(_OTHER_NAMES) | set(_CREATION) | {"norm", "convert", "stop_gradient"})


def build_formula(text: str, inputs: Mapping[str, TensorType], *, name: str = "f", outputs: Sequence[str] = ()) -> Document:
    """The graph of a formula, a document of one graph.

    `inputs` are the types of the names that it may use, in the order in which the graph declares them. Assignments name outputs, of
    which `outputs` chooses; without one, the output is called `outputs[0]`, or y. Raises FormulaError with the column, and
    UnknownNameError for an output that is not assigned.
    """
    statements = _parsed(text)
    recorder = Recorder()
    scope: dict[str, Any] = {key: recorder.input(Key(key), type_) for key, type_ in inputs.items()}
    walker = _Walker(text, recorder, scope)
    assigned: dict[str, Array] = {}
    for k, statement in enumerate(statements):
        if isinstance(statement, ast.Expr):
            if k < len(statements) - 1:
                walker.refuse(statement, "only the last part may go without a name; write NAME = ...")
            alone = outputs[0] if len(outputs) == 1 and not assigned else DEFAULT_OUTPUT
            assigned[alone] = walker.output(statement.value)
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
            target = statement.targets[0].id
            if target in inputs:
                walker.refuse(statement, f"'{target}' is an input and cannot be assigned")
            scope[target] = assigned[target] = walker.output(statement.value)
        else:
            walker.refuse(statement, "a formula is an expression, or parts NAME = EXPRESSION with ';' between them")
    for key in outputs:
        if key not in assigned:
            raise UnknownNameError(
                f"the formula has no output '{key}'{did_you_mean(key, list(assigned))} (outputs: {', '.join(assigned)})"
            )
    return recorder.document(name, {key: assigned[key] for key in outputs} if outputs else assigned)


def _parsed(text: str) -> list[ast.stmt]:
    if len(text) > MAX_LENGTH:
        raise FormulaError(f"formula: has {len(text)} characters; the most are {MAX_LENGTH}")
    if not text.strip():
        raise FormulaError("formula: is empty; write an expression, such as 'sum(x * x)'")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            statements = ast.parse(text.strip()).body
    except SyntaxError as error:
        raise FormulaError(f"formula, column {error.offset or 1}: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise FormulaError(f"formula: nests too deeply; the most is {MAX_DEPTH} levels") from None
    except ValueError as error:  # a NUL, half of a surrogate pair, an integer of thousands of digits
        raise FormulaError(f"formula: {error}") from None
    if not statements:
        raise FormulaError("formula: is empty; write an expression, such as 'sum(x * x)'")
    return statements


class _Walker:
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
        value = self.value(node)
        if isinstance(value, Array):
            return value
        return self.checked(node, "it", lambda: self._lifted(value))  # type: ignore[no-any-return]

    def value(self, node: ast.expr) -> Any:
        """The value of an expression."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.refuse(node, f"nests too deeply; the most is {MAX_DEPTH} levels")
        visit = _VISITS.get(type(node))
        if visit is None:
            self.refuse(node, f"{_WORDS.get(type(node), type(node).__name__)} has no place in a formula")
        found = visit(self, node)
        self.depth -= 1
        return found

    def checked(self, node: ast.AST, what: str, compute: Callable[[], Any]) -> Any:
        """What `compute` gives. Whatever it raises is told with the place of the node."""
        try:
            return compute()
        except FormulaError:
            raise
        except Exception as error:
            message = " ".join(str(error).split()) or type(error).__name__
            if isinstance(error, TypeError) and not isinstance(error, TiduError):
                message = message.replace("<lambda>()", f"{what}()").replace("accumulate()", f"{what}()")
            self.refuse(node, message if isinstance(error, TiduError | IndexError) else f"{what}: {message}")

    # One method per kind of node.

    def constant(self, node: ast.Constant) -> Any:
        if node.value is Ellipsis or node.value is None:
            return node.value
        if isinstance(node.value, bool | int | float | complex):
            return self._small(node, node.value)
        return self.refuse(
            node,
            "text has no place in a formula but as einsum's subscripts and dtype="
            if isinstance(node.value, str)
            else "bytes have no place in a formula",
        )

    def name(self, node: ast.Name) -> Any:
        if node.id in self.scope:
            return self.scope[node.id]
        if node.id in CONSTANTS:
            return CONSTANTS[node.id]
        known = [*self.scope, *CONSTANTS]
        if node.id in function_names():
            self.refuse(node, f"'{node.id}' is a function; write {node.id}(...)")
        more = did_you_mean(node.id, known) or f"; give it a type with -i {node.id[:40]}:TYPE"
        return self.refuse(node, f"unknown name '{node.id[:60]}'{more}")

    def unary(self, node: ast.UnaryOp) -> Any:
        # A run of signs is a chain, too, but nobody needs a long one.
        operand = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            self.refuse(node, "'not' has no place in a formula; write ~ for arrays of bools")
        name = _UNARY[type(node.op)]
        if not isinstance(operand, Array):
            if not isinstance(operand, bool | int | float | complex):
                self.refuse(node, f"{name} takes numbers and arrays")
            if name == "invert" and not isinstance(operand, int):
                self.refuse(node, "~ takes integers and bools")
            return self._small(node, -operand if name == "negative" else +operand if name == "positive" else ~int(operand.real))
        return self.checked(node, name, lambda: apply_ufunc(name, operand))

    def binary(self, node: ast.BinOp) -> Any:
        # The left spine of a chain is walked and not recursed into.
        spine: list[ast.BinOp] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp):
            spine.append(left)
            left = left.left
        found = self.value(left)
        for step in reversed(spine):
            found = self._combined(step, _BINARY[type(step.op)], found, self.value(step.right))
        return found

    def compare(self, node: ast.Compare) -> Any:
        if len(node.ops) != 1:
            self.refuse(node, "comparisons do not chain; write (a < b) & (b < c)")
        name = _COMPARE.get(type(node.ops[0]))
        if name is None:
            self.refuse(node, "'in' and 'is' have no place in a formula")
        return self._combined(node, name, self.value(node.left), self.value(node.comparators[0]))

    def boolean(self, node: ast.BoolOp) -> NoReturn:
        self.refuse(node, "'and' and 'or' have no place in a formula; write & and | with parentheses: (a > 0) & (b > 0)")

    def conditional(self, node: ast.IfExp) -> NoReturn:
        self.refuse(node, "'if' has no place in a formula; write where(condition, a, b)")

    def attribute(self, node: ast.Attribute) -> Any:
        if node.attr != "T":
            self.refuse(
                node, f"attributes other than .T have no place in a formula; write {node.attr[:40]}(...) if it is a function"
            )
        operand = self.value(node.value)
        return self.checked(node, ".T", lambda: self._lifted(operand).permuted(range(self._lifted(operand).ndim)[::-1]))

    def sequence(self, node: ast.List | ast.Tuple) -> Any:
        return (tuple if isinstance(node, ast.Tuple) else list)(self.value(item) for item in node.elts)

    def subscript(self, node: ast.Subscript) -> Any:
        operand = self.value(node.value)
        index = self._index(node.slice)
        if any(
            isinstance(i, float | complex) and not isinstance(i, int) for i in (index if isinstance(index, tuple) else (index,))
        ):
            self.refuse(node, "indices are integers")
        return self.checked(node, "index", lambda: self._lifted(operand)[index])

    def call(self, node: ast.Call) -> Any:
        if not isinstance(node.func, ast.Name):
            dotted = f"; write {node.func.attr[:40]}(...)" if isinstance(node.func, ast.Attribute) else ""
            self.refuse(node, f"only functions can be called, by their names{dotted}")
        name = node.func.id
        function = _function(name)
        if function is None:
            self.refuse(node, f"unknown function '{name[:60]}'{did_you_mean(name, function_names())}")
        if name in _CREATION:
            args, options = self._arguments(node, name)
            return self.checked(node, name, lambda: _CREATION[name](self.recorder, *args, **options))
        args, options = self._arguments(node, name)
        if not arrays_in([*args, *options.values()]):
            at = next((k for k, a in enumerate(args) if isinstance(a, Number | list | tuple)), None)
            if at is None:
                self.refuse(node, f"{name} takes an array or a number")
            args[at] = self.checked(node, name, lambda: self._lifted(args[at]))
        return self.checked(node, name, lambda: _array_or_refusal(function(*args, **options), name))

    def starred(self, node: ast.expr) -> NoReturn:
        self.refuse(node, "'*' before an argument has no place in a formula")

    # Their parts.

    def _arguments(self, node: ast.Call, name: str) -> tuple[list[Any], dict[str, Any]]:
        args = [self._argument(a, name if k == 0 else "", k) for k, a in enumerate(node.args)]
        options: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                self.refuse(keyword, "'**' has no place in a formula")
            options[keyword.arg] = (
                self._dtype(keyword.value) if keyword.arg == "dtype" else self._argument(keyword.value, keyword.arg, 0)
            )
            if keyword.arg in ("out", "casting", "order", "subok", "where", "device", "like"):
                self.refuse(keyword.value, f"{keyword.arg}= has no place in a formula")
        if name == "convert" and len(node.args) == 2:
            args[1] = self._dtype(node.args[1])
        return args, options

    def _argument(self, node: ast.expr, where: str, position: int) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and where in ("einsum", "indexing", "ord"):
            return node.value[:400]
        if isinstance(node, ast.Name) and node.id in ITEMSIZE and node.id not in self.scope:
            return numpy_dtype(np, node.id)
        return self.value(node)

    def _dtype(self, node: ast.expr) -> Any:
        name = node.id if isinstance(node, ast.Name) else node.value if isinstance(node, ast.Constant) else None
        if not isinstance(name, str) or name not in ITEMSIZE:
            hint = did_you_mean(name, list(ITEMSIZE)) if isinstance(name, str) else ""
            self.refuse(node, f"not a dtype{hint or '; they are ' + ', '.join(ITEMSIZE)}")
        return numpy_dtype(np, name)

    def _index(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Tuple):
            return tuple(self._index(item) for item in node.elts)
        if isinstance(node, ast.Slice):
            ends = [None if end is None else self.value(end) for end in (node.lower, node.upper, node.step)]
            if any(not (end is None or (isinstance(end, int) and not isinstance(end, bool))) for end in ends):
                self.refuse(node, "slices go from integer to integer")
            return slice(*ends)
        return self.value(node)

    def _combined(self, node: ast.AST, name: str, left: Any, right: Any) -> Any:
        for side in (left, right):
            if not isinstance(side, Array | Number | list | tuple):
                self.refuse(node, f"{name} takes numbers and arrays")
        if not (isinstance(left, Number) and isinstance(right, Number)):
            if not arrays_in([left, right]):
                left = self.checked(node, name, lambda: self._lifted(left))
            return self.checked(node, name, lambda: apply_ufunc(name, left, right))
        if name == "power":
            return self._small(node, self._number_power(node, left, right))
        if name not in _NUMBERS:
            self.refuse(node, f"{name} of two numbers has no place in a formula")
        return self._small(node, self.checked(node, name, lambda: _NUMBERS[name](left, right)))

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

    def _lifted(self, value: Any) -> Array:
        if isinstance(value, Array):
            return value
        held = arrays_in([value])
        if held:
            return lift(value, held[0])
        if isinstance(value, Number | list | tuple):
            return self.recorder.constant(np.asarray(value))
        raise BuildError("not an array or a number")


def _array_or_refusal(value: Any, name: str) -> Any:
    if not isinstance(value, Array):
        raise BuildError(f"{name} gives no single array here")
    return value


_VISITS: Mapping[type[ast.AST], Callable[[_Walker, Any], Any]] = {
    ast.Constant: _Walker.constant,
    ast.Name: _Walker.name,
    ast.UnaryOp: _Walker.unary,
    ast.BinOp: _Walker.binary,
    ast.Compare: _Walker.compare,
    ast.BoolOp: _Walker.boolean,
    ast.IfExp: _Walker.conditional,
    ast.Attribute: _Walker.attribute,
    ast.List: _Walker.sequence,
    ast.Tuple: _Walker.sequence,
    ast.Subscript: _Walker.subscript,
    ast.Call: _Walker.call,
    ast.Starred: _Walker.starred,
}

_WORDS: Mapping[type[ast.AST], str] = {
    ast.Lambda: "a lambda", ast.ListComp: "a comprehension", ast.SetComp: "a comprehension", ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension", ast.Dict: "a dict", ast.Set: "a set", ast.JoinedStr: "text", ast.NamedExpr: "':='",
    ast.Await: "'await'", ast.Yield: "'yield'", ast.YieldFrom: "'yield'", ast.Slice: "':'",
}  # fmt: skip


def _function(name: str) -> Callable[..., Any] | None:
    if name in _CREATION:
        return _CREATION[name]
    if name == "norm":
        return FUNCTIONS["linalg.norm"]
    if name == "convert":
        return lambda x, dtype: x.convert(np.dtype(dtype))
    if name == "stop_gradient":
        return lambda x: x.emit("stop_gradient")
    name = ALIASES.get(_OTHER_NAMES.get(name, name), _OTHER_NAMES.get(name, name))
    if name in SPECIAL or name in UFUNCS:
        arity = _arity(name)

        def apply(*operands: Any) -> Any:
            if len(operands) != arity:
                raise BuildError(f"{name} takes {arity} argument{'s' if arity != 1 else ''}, got {len(operands)}")
            return apply_ufunc(name, *operands)

        return apply
    return None if name in _HIDDEN else FUNCTIONS.get(name) if "." not in name else None


def _arity(name: str) -> int:
    from scipy import special  # type: ignore[import-untyped]

    nin: int = (getattr(np, name) if name in UFUNCS else getattr(special, name)).nin
    return nin


def _full(recorder: Recorder, shape: Any, value: Any = 0.0, dtype: Any = None) -> Array:
    sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    if not all(isinstance(n, int) and n >= 0 for n in sizes):
        raise ValueError("a shape is of integers from 0 up")
    filled = value if isinstance(value, Array) else recorder.constant(np.asarray(value))
    return (filled if dtype is None else filled.convert(dtype)).broadcast(sizes)


def _arange(recorder: Recorder, start: int, stop: int | None = None, step: int = 1, dtype: Any = None) -> Array:
    start, stop = (0, start) if stop is None else (start, stop)
    if not all(isinstance(n, int) for n in (start, stop, step)) or not step:
        raise ValueError("arange takes integers; write linspace for floats")
    n = len(range(start, stop, step))
    counted = recorder.emit("iota", dtype="i64", shape=(n,), dimension=0)
    found = counted if step == 1 else counted * step
    return (found if start == 0 else found + start).convert(dtype or np.dtype(np.int64))


def _linspace(recorder: Recorder, start: float, stop: float, num: int = 50) -> Array:
    if not isinstance(num, int) or num < 1:
        raise ValueError("linspace takes a number of points from 1 up")
    counted = recorder.emit("iota", dtype="f64", shape=(num,), dimension=0)
    return counted * ((stop - start) / max(num - 1, 1)) + start


def _eye(recorder: Recorder, n: int, m: int | None = None, k: int = 0, dtype: Any = None) -> Array:
    shape = (n, n if m is None else m)
    rows, columns = (recorder.emit("iota", dtype="i64", shape=shape, dimension=d) for d in (0, 1))
    return ((columns - rows) == k).convert(dtype or np.dtype(np.float64))


_CREATION: Mapping[str, Callable[..., Array]] = {
    "zeros": lambda recorder, shape, dtype=None: _full(recorder, shape, 0.0, dtype),
    "ones": lambda recorder, shape, dtype=None: _full(recorder, shape, 1.0, dtype),
    "full": _full,
    "arange": _arange,
    "linspace": _linspace,
    "eye": _eye,
    "array": lambda recorder, values, dtype=None: _full_array(recorder, values, dtype),
}


def _full_array(recorder: Recorder, values: Any, dtype: Any) -> Array:
    held = arrays_in([values])
    found = lift(values, held[0]) if held else recorder.constant(np.asarray(values))
    return found if dtype is None else found.convert(dtype)


def free_names(text: str) -> Iterator[str]:
    """The names that a formula uses and neither defines nor calls, in the order of their use."""
    seen = set()
    statements = _parsed(text)
    called = {id(n.func) for s in statements for n in ast.walk(s) if isinstance(n, ast.Call)}
    for node in (n for s in statements for n in ast.walk(s)):
        if isinstance(node, ast.Name) and id(node) not in called and node.id not in seen:
            seen.add(node.id)
            yield node.id
