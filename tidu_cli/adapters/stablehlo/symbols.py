"""Modules with shapes that are known at run time, as jax.export writes them of symbolic dimensions: `?` becomes an open size.

Such a module computes sizes from those of its arguments, by get_dimension_size and arithmetic, and makes arrays of these. Here that
is done with sizes that are names, before the module is read: what results is a module of types such as f32[b,3], whose operations
have the attributes that they were given as operands.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tidu_cli.adapters.stablehlo.module import CALLEES, Block, Function, Module, Operation
from tidu_cli.adapters.stablehlo.reading.site import MOST_CALLS, RefusedError, array_type, placed_error
from tidu_cli.adapters.stablehlo.shapes import (
    BRANCHES,
    OF_SIZE,
    SHAPES,
    Value,
    called_shape,
    numbers_of,
    shape_of,
    shape_of_text,
    static,
)
from tidu_cli.errors import DocumentError, LimitError, TiduError, TypeTextError
from tidu_cli.frozen import replace
from tidu_cli.graph.sizes.algebra import Name, Part, Size, names_of, size_named
from tidu_cli.graph.sizes.names import substituted
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.sizes.polynomials import bounds
from tidu_cli.graph.sizes.reading import check_name
from tidu_cli.graph.types import TensorType
from tidu_cli.limits import require


def with_sizes(module: Module, main: Function) -> tuple[Module, Mapping[str, Name]]:
    """A module whose main function has open sizes for `?`, and the names of these. Raises RefusedError."""
    shapes = [shape_of_text(text) for text in main.body.arguments]
    names = {(k, axis): f"d{k}_{axis}" for k, shape in enumerate(shapes) for axis, n in enumerate(shape[0]) if n is None}
    first = _Reader(module, main)
    with suppress(DocumentError, RefusedError):  # of what is not decided before it is known which sizes are one
        first.function(main, [_argument(text, k, names, {}) for k, text in enumerate(main.body.arguments)])
    sizes, declared = first.said.solved(list(names.values()))
    reader = _Reader(module, main)
    function, _ = reader.function(main, [_argument(text, k, names, sizes) for k, text in enumerate(main.body.arguments)])
    return replace(module, functions={**module.functions, **reader.made, main.name: function}), declared


def _argument(text: str, k: int, names: Mapping[tuple[int, int], str], sizes: Mapping[str, Any]) -> Value:
    shape, dtype = shape_of_text(text)
    chosen = [sizes.get(names[k, axis]) or size_named(Name(names[k, axis])) if n is None else n for axis, n in enumerate(shape)]
    type_ = TensorType(dtype, tuple(chosen))
    return Value(type_, str(type_))


class _Said:
    """What a module says of its sizes: equal ones, what is not less than 0, and names."""

    def __init__(self) -> None:
        self.equal: list[tuple[Any, Any]] = []
        self.positive: list[Any] = []
        self.names: list[tuple[Any, str]] = []

    def solved(self, unknown: Sequence[str]) -> tuple[dict[str, Any], dict[str, Name]]:
        """What each unknown size is, in terms of names, and the names."""
        sizes: dict[str, Any] = {}
        for pair in self.equal:
            a, b = (substituted(size, sizes) for size in pair)
            name, other = (_name_of(a), b) if _name_of(a) else (_name_of(b), a)
            if name and name not in _texts(other):
                sizes = {text: substituted(size, {name: other}) for text, size in sizes.items()} | {name: other}
        rest = [name for name in unknown if name not in sizes]
        wholes = self._called(rest, sizes)
        wholes |= {name: size_named(Name(name)) for name in rest if name not in wholes}
        declared = {text: self._declared(text, wholes) for whole in wholes.values() for text in _texts(whole)}
        named = {text: size_named(name) for text, name in declared.items()}
        by_name: dict[str, Any] = {name: substituted(whole, named) for name, whole in wholes.items()}
        for name in unknown:
            if name in sizes:
                by_name[name] = substituted(sizes[name], by_name)
        return by_name, declared

    def _called(self, rest: Sequence[str], sizes: Mapping[str, Any]) -> dict[str, Any]:
        """Of unknown sizes what they are in the names that the module has: N, or N + 1 where what it calls N is one less."""
        wholes: dict[str, Any] = {}
        texts = set[str]()
        for size, text in sorted(dict.fromkeys(self.names), key=lambda said: not _name_of(said[0])):
            if text not in texts and _is_name(text):
                inverse = self._inverse(substituted(substituted(size, sizes), wholes), text, set(rest) - set(wholes))
                wholes |= inverse
                texts |= {text} if inverse else set()
        return wholes

    def _inverse(self, size: Any, text: str, rest: Collection[str]) -> dict[str, Any]:
        """The one of these unknown sizes that makes a size a name, and what it is then; nothing if there is none."""
        part, times = _alone(size), 1
        if isinstance(part, Part) and part.op == "//" and isinstance(part.b, int):
            if not any(isinstance(b, int) and b == 0 and a == part.a % part.b for a, b in self.equal):
                return {}
            size, times = part.a, part.b
        for name in (name for name in dict.fromkeys(_texts(size)) if name in rest):
            others = size - size_named(Name(name))
            if name not in _texts(others):
                return {name: size_named(Name(text)) * times - others}
        return {}

    def _declared(self, text: str, wholes: Mapping[str, Any]) -> Name:
        """A name, with the bounds that are asserted of it alone."""
        positive = [substituted(size, wholes) for size in self.positive]
        equal = [(substituted(a, wholes), b) for a, b in self.equal if isinstance(b, int) and b == 0]
        ends = [end for size in positive if (end := _end(size, text)) is not None]
        least, most = max([1, *(-k for sign, k in ends if sign > 0)]), min([k for sign, k in ends if sign < 0], default=None)
        multiples = [
            part.b
            for a, _ in equal
            if isinstance(part := _alone(a), Part) and part.op == "%" and isinstance(part.b, int) and _name_of(part.a) == text
        ]
        return Name(text, least, most, max(multiples, default=1))


def _is_name(text: str) -> bool:
    try:
        check_name(text)
    except TypeTextError:
        return False
    return True


def _end(size: Any, name: str) -> tuple[int, int] | None:
    """(1, k) of N + k, (-1, k) of k - N, of this name N; None of all other sizes."""
    terms = dict(size.terms) if isinstance(size, Size) else {}
    constant = terms.pop((), 0)
    ((monomial, sign),) = terms.items() if len(terms) == 1 else (((), 0),)
    return (sign, constant) if abs(sign) == 1 and [(getattr(a, "text", ""), p) for a, p in monomial] == [(name, 1)] else None


def _alone(size: Any) -> Any:
    """The name or part that a size is, if it is just one, or a remainder."""
    terms = size.written if isinstance(size, Size) else ()
    return terms[0][0][0][0] if len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1 and terms[0][0][0][1] == 1 else None


def _name_of(size: Any) -> str:
    alone = _alone(size)
    return alone.text if isinstance(alone, Name) else ""


def _texts(size: Any) -> list[str]:
    return [name.text for name in names_of(size)]


def _is_assertion(operation: Operation) -> bool:
    """Whether an operation says of shapes what has to hold."""
    return operation.name == "stablehlo.custom_call" and operation.attributes.get("call_target_name") == "shape_assertion"


def _at_places(operation: Operation, values: Mapping[int, Value]) -> Operation | None:
    """A slice from clamped places on, which JAX writes by its limits where sizes are open, as stablehlo.dynamic_slice; or None."""
    x, start, limit, step = operation.operands
    clamp, add = values[start].by, values[limit].by
    if values[start].numbers is not None or clamp is None or add is None:
        return None
    if (clamp.name, add.name) != ("stablehlo.clamp", "stablehlo.add") or add.operands[0] != start:
        return None
    low, place, high = clamp.operands
    sizes, joined, shape = values[add.operands[1]].numbers, values[place].by, shape_of(values[x])
    if sizes is None or joined is None or joined.name != "stablehlo.concatenate" or len(joined.operands) != len(shape):
        return None
    due = tuple([n - size for n, size in zip(shape, sizes, strict=True)])
    if values[high].numbers != due or {*(values[low].numbers or "?")} != {0} or {*(values[step].numbers or "?")} != {1}:
        return None
    places = [_number(place, values) for place in joined.operands]
    return replace(operation, name="stablehlo.dynamic_slice", operands=[x, *places], attributes={"slice_sizes": list(sizes)})


def _number(value: int, values: Mapping[int, Value]) -> int:
    """The integer that an array of one integer has, before it was made that array."""
    by = values[value].by
    while by is not None and by.name in ("stablehlo.reshape", "stablehlo.convert"):
        (operand,) = by.operands
        type_ = values[operand].type
        if type_ is None or type_.inexact or type_.dtype == "bool":
            break
        value, by = operand, values[operand].by
    return value


_OF_WINDOWS = ("window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding")
"""What the last operands of windows of open sizes are."""

_ROUNDING: Mapping[str, Callable[[Any, Any], Any]] = {"floor_divide": operator.floordiv, "remainder": operator.mod}
"""JAX's functions of integers that round down, by the beginnings of their names."""


class _Reader:
    """A module in the making: `made` are functions for the types that they are called with, which have names of their own."""

    def __init__(self, module: Module, main: Function) -> None:
        asserted = (o.operands[0] for o in main.body.operations if _is_assertion(o))
        self.module, self.asserted = module, set(asserted)
        self.made: dict[str, Function] = {}
        self.said = _Said()
        self.around: list[str] = []
        self.rounding: dict[str, bool] = {}
        self.visited = self.folded = 0

    def function(self, function: Function, arguments: Sequence[Value]) -> tuple[Function, list[Value]]:
        """A function for arguments of which this is known, and its results."""
        if function.name in self.around or len(self.around) > MOST_CALLS:
            raise RefusedError(f"function @{function.name} calls itself, or functions call one another too deep")
        self.around.append(function.name)
        block, results = self.block(function.body, arguments, {})
        self.around.pop()
        return replace(function, body=block, results=[x.text for x in results]), results

    def block(self, block: Block, arguments: Sequence[Value], around: Mapping[int, Value]) -> tuple[Block, list[Value]]:
        """A block for its arguments, with the values around it."""
        values = {**around, **dict(enumerate(arguments, block.first))}
        operations = []
        for operation in block.operations:
            self.visited += 1
            require("expansion", self.visited, "functions of sizes that are known at run time, written out where they are called")
            changed, results = self.operation(operation, values)
            if changed is not None:
                operations.append(changed)
            values.update(enumerate(results, operation.first))
        results = [values[v] for v in block.results]
        return replace(block, arguments=[x.text for x in arguments], operations=operations), results

    def operation(self, operation: Operation, values: Mapping[int, Value]) -> tuple[Operation | None, list[Value]]:
        """An operation with types for its results, and these; None for what only says something of sizes."""
        operands = [values[v] for v in operation.operands]
        name = operation.name.removeprefix("stablehlo.")
        if _is_assertion(operation):
            return None, []
        if operation.name in CALLEES:
            return self.call(operation, operands)
        if name == "custom_call" and operation.attributes.get("call_target_name") == "stablehlo.dynamic_reduce_window":
            operation = self.windows(operation, operands)
            operands, name = operands[: len(operation.operands)], operation.name.removeprefix("stablehlo.")
        branches: list[Value] = []
        if operation.regions:
            operation, branches = self.regions(operation, operands, values)
        if name == "compare":
            self.compare(operation, operands)
        try:
            if name == "real_dynamic_slice" and (at_places := _at_places(operation, values)):
                operation, operands = at_places, operands[:1]
            types = [self.result(operation, branches or operands, k, text) for k, text in enumerate(operation.results)]
            numbers = numbers_of(operation, operands, types)
            changed = static(operation, operands)
        except (DocumentError, LimitError):
            raise
        except TiduError as error:
            raise placed_error(operation, error) from None
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError):
            raise placed_error(operation, RefusedError("has sizes that do not fit its operands")) from None
        by = operation
        results = [Value(t, str(t) if t is not None else text, by=by) for t, text in zip(types, by.results, strict=True)]
        if numbers is not None:
            results = [replace(results[0], numbers=numbers)]
            if name in ("add", "multiply", "negate", "subtract") and isinstance(numbers[0], OpenSize):
                terms = [x.numbers[0] for x in operands if x.numbers]
                if types[0] is not None and not types[0].rank and bounds(numbers[0])[0] >= 0 > min(bounds(n)[0] for n in terms):
                    return self.size(operation, results)  # of numbers that are no sizes, as -(-n // 2)
        return replace(changed, results=[x.text for x in results]), results

    def call(self, operation: Operation, operands: Sequence[Value]) -> tuple[Operation, list[Value]]:
        """A call, of the function as it is for these operands."""
        callee = CALLEES[operation.name]
        function = self.module.functions.get(str(operation.attributes.get(callee)))
        if function is None:
            raise RefusedError(f"the module has no function @{operation.attributes.get(callee)}")
        for attributes, value in zip(function.argument_attributes, operands, strict=True):
            if (text := attributes.get("jax.global_constant")) and value.numbers:
                self.said.names.append((value.numbers[0], str(text)))
        folded = self.folded
        changed, results = self.function(function, operands)
        if (rounded := self.rounded_down(function, operands)) is not None:
            results = [replace(results[0], numbers=(rounded,))]
        if isinstance(rounded, OpenSize) and bounds(rounded)[0] >= 0:
            return self.size(operation, results)
        types = (text for o in function.operations() for text in o.results)
        if self.folded == folded and not any("?" in text for text in (*function.body.arguments, *types)):
            return operation, results
        name = f"{function.name}.sizes{len(self.made)}"
        self.made[name] = replace(changed, name=name)
        return replace(operation, attributes={**operation.attributes, callee: name}, results=[x.text for x in results]), results

    def rounded_down(self, function: Function, operands: Sequence[Value]) -> Any:
        """The quotient or rest, rounded down, of the last two sizes: what JAX's functions of these names compute; None of all else.

        They choose by the rest, which is seldom decided for all sizes. What they compute is compared at some numbers.
        """
        by_name = next(
            (f for name, f in _ROUNDING.items() if function.name.startswith(name) and len(function.body.results) == 1), None
        )
        sizes = [x.numbers[0] for x in operands[-2:] if x.numbers is not None and len(x.numbers) == 1]
        if by_name is None or len(sizes) < 2 or bounds(sizes[1])[0] < 1:
            return None
        if function.name not in self.rounding:
            firsts, (a, b) = operands[:-2], operands[-2:]
            tries = [(m, n, replace(a, numbers=(m,)), replace(b, numbers=(n,))) for m in range(-7, 8) for n in (1, 2, 3)]
            values = [(by_name(m, n), self.function(function, [*firsts, x, y])[1][0].numbers) for m, n, x, y in tries]
            self.rounding[function.name] = all((due,) == numbers for due, numbers in values)
        return by_name(*sizes) if self.rounding[function.name] else None

    def size(self, operation: Operation, results: Sequence[Value]) -> tuple[Operation, list[Value]]:
        """A number that is a size, as the operation that makes that."""
        self.folded += 1
        (size,) = results[0].numbers or ()
        attributes = {"expression": size}
        return replace(operation, name=OF_SIZE, operands=[], attributes=attributes, results=[results[0].text]), list(results)

    def windows(self, operation: Operation, operands: Sequence[Value]) -> Operation:
        """The call that JAX writes for windows of sizes that are known at run time, as the operation that it stands for."""
        given = {name: x.numbers for name, x in zip(_OF_WINDOWS, operands[-len(_OF_WINDOWS) :], strict=False)}
        names = operation.attributes.get("called_computations")
        called = self.module.functions.get(str(names[0])) if isinstance(names, list) and names else None
        if called is None or len(given) < len(_OF_WINDOWS) or None in given.values():
            raise placed_error(
                operation, RefusedError("has windows whose sizes are not known; export the module with fixed shapes")
            )
        attributes = {name: list(numbers or ()) for name, numbers in given.items()}
        arrays = operation.operands[: -len(_OF_WINDOWS)]
        return replace(operation, name="stablehlo.reduce_window", operands=arrays, attributes=attributes, regions=[called.body])

    def regions(
        self, operation: Operation, operands: Sequence[Value], values: Mapping[int, Value]
    ) -> tuple[Operation, list[Value]]:
        """An operation whose regions have types, of loops those of the operands; and of branches what they give."""
        blocks, results = [], list[Value]()
        for block in operation.regions:
            if operation.name == "stablehlo.while":
                arguments = [replace(x, numbers=None) for x in operands]
            else:
                arguments = [Value(array_type(text), text) for text in block.arguments]
            changed, results = self.block(block, arguments, values)
            blocks.append(changed)
        return replace(operation, regions=blocks), results if operation.name in BRANCHES else []

    def compare(self, operation: Operation, operands: Sequence[Value]) -> None:
        """What is compared of sizes where the main function asserts that it holds."""
        a, b = (x.numbers for x in operands)
        if len(self.around) == 1 and operation.first in self.asserted and a is not None and b is not None and len(a) == len(b) == 1:
            direction = operation.attributes.get("comparison_direction")
            if direction == "EQ":
                self.said.equal.append((a[0], b[0]))
            if direction == "GE":
                self.said.positive.append(a[0] - b[0])

    def result(self, operation: Operation, operands: Sequence[Value], k: int, text: str) -> TensorType | None:
        """The type of a result. Raises RefusedError where its shape is not known."""
        if "?" not in text:
            return array_type(text) if not text.startswith(("tensor<", "!", "tuple<")) else None
        shape, dtype = shape_of_text(text)
        rule = SHAPES.get(operation.name.removeprefix("stablehlo."))
        sizes = rule(operation, operands) if rule else None
        if operation.name in ("stablehlo.optimization_barrier", "stablehlo.while", *BRANCHES):
            sizes = shape_of(operands[k])
        if operation.name == "stablehlo.custom_call":
            sizes = called_shape(operation, operands, k)
        if sizes is None or len(sizes) != len(shape):
            raise RefusedError(f"has the type {text}, whose shape is not known; export the module with fixed shapes")
        return TensorType(dtype, tuple(n if m is None else m for n, m in zip(sizes, shape, strict=True)))
