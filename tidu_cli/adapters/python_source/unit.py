"""A function in the making: a graph, statement by statement, and the loops and branches in it.

Graphs of loops and branches are functions within the function, called by plain loops and ifs of Python.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tidu_cli.adapters.python_source import text as python
from tidu_cli.adapters.python_source.arrays import Results, Write, zeros
from tidu_cli.adapters.python_source.elements import dtype_text, filled, template, zero
from tidu_cli.adapters.source_code import UnwrittenError
from tidu_cli.errors import UndecidedSizeError
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.open_sizes import has_open_size
from tidu_cli.graph.sizes.open import least
from tidu_cli.graph.types import TensorType
from tidu_cli.runtime.plans.steps import needed_steps


def _started(unit: Any, texts: Sequence[str], ports: Sequence[Any]) -> list[str]:
    """Variables that a loop changes, with their first values."""
    names: list[str] = unit.names.of_keys(port.key for port in ports)
    for name, text in zip(names, texts, strict=True):
        unit.emit(f"{name} = {text}")
    return names


def _calls(unit: Any, targets: Sequence[str], function: str, arguments: Sequence[str], deeper: int = 1) -> None:
    """Assign what a function gives."""
    unit.emit(f"{', '.join(targets)}{' = ' if targets else ''}{function}({', '.join(arguments)})", deeper)


def _scan(unit: Any, case: Any, xs: list[python.Text]) -> Results:
    a, graph = case.attrs, case.attrs.body.graph
    first, end, length = a.num_consts, a.num_consts + a.num_carry, a.length
    texts = [unit.full(x, t) for x, t in zip(xs, case.operands, strict=True)]
    stacked = case.results[a.num_carry :]
    if length == 0:
        return [*xs[first:end], *map(zeros, stacked)]
    body = unit.module.inner(unit, graph, "body", "body")
    texts = [text if first <= k < end else unit.simple(python.call(text, ())).code for k, text in enumerate(texts)]
    carry = _started(unit, texts[first:end], graph.inputs[first:end])
    items = [unit.names.new(f"{python.identifier(str(o.key))}_k") for o in graph.outputs[a.num_carry :]]
    lists = [unit.names.new(f"{item}s") for item in items]
    for name in lists:
        unit.emit(f"{name} = []")
    k = unit.names.numbered("k")
    steps = f"range({python.size_text(length)})"
    unit.emit(f"for {k} in {f'reversed({steps})' if a.reverse else steps}:")
    scanned = [f"{text}[{k}]" for text in texts[end:]]
    _calls(unit, [*carry, *items], body, [*texts[:first], *carry, *scanned])
    for name, item in zip(lists, items, strict=True):
        unit.emit(f"{name}.append({item})", 1)
    results = [python.call(name, t.shape) for name, t in zip(carry, case.results, strict=False)]
    lists = [f"{name}[::-1]" if a.reverse else name for name in lists]
    if least(length) == 0:  # NumPy stacks one array at least
        return results + [python.call(_stacked(name, t), t.shape) for name, t in zip(lists, stacked, strict=True)]
    return results + [python.call(f"np.stack({name})", t.shape) for name, t in zip(lists, stacked, strict=True)]


def _stacked(name: str, type_: Any) -> str:
    """What a list of arrays is, which may be empty."""
    return f"np.reshape(np.array({name}, dtype={dtype_text(type_.dtype)}), {python.shape_text(type_.shape)})"


def _while(unit: Any, case: Any, xs: list[python.Text]) -> Results:
    a = case.attrs
    texts = [unit.full(x, t) for x, t in zip(xs, case.operands, strict=True)]
    condition = unit.module.inner(unit, a.condition.graph, "condition", "condition")
    body = unit.module.inner(unit, a.body.graph, "body", "body")
    *both, first = a.split(texts)
    of_condition, of_body = ([unit.simple(python.call(text, ())).code for text in some] for some in both)
    carry = _started(unit, first, a.body.graph.inputs[a.body_consts :])
    unit.emit(f"while {condition}({', '.join([*of_condition, *carry])}):")
    _calls(unit, carry, body, [*of_body, *carry])
    return [python.call(name, t.shape) for name, t in zip(carry, case.results, strict=True)]


def _cond(unit: Any, case: Any, xs: list[python.Text]) -> Results:
    of_bool = case.operands[0].dtype == "bool"
    branches = [b.graph for b in case.attrs.branches[: 2 if of_bool else None]]
    texts = [unit.full(x, t) for x, t in zip(xs, case.operands, strict=True)]
    index, *arguments = [unit.simple(python.call(text, ())).code for text in texts]
    functions = [unit.module.inner(unit, graph, "branch", f"branches[{k}]") for k, graph in enumerate(branches)]
    targets = [unit.named(k) for k in range(len(case.results))]
    last = len(functions) - 1
    if of_bool:
        tests = {1: index} if last else {}
        last = 0
    else:
        tests = {k: f"{index} <= 0" if not k else f"{index} == {k}" for k in range(last)}
    for n, (k, test) in enumerate(tests.items()):
        unit.emit(f"{'elif' if n else 'if'} {test}:")
        _calls(unit, targets, functions[k], arguments)
    if tests:
        unit.emit("else:")
    _calls(unit, targets, functions[last], arguments, int(bool(tests)))
    return [python.call(name, t.shape) for name, t in zip(targets, case.results, strict=True)]


CONTROL: dict[str, Write] = {"scan": _scan, "while": _while, "cond": _cond}
"""By op."""

_INLINED = 32
"""An expression that is read once and longer than this has a name."""

_SECTIONS = ("# Values", "# Derivatives")

_NAME = re.compile(r"[A-Za-z_]\w*")
_METHOD = re.compile(r"(.*\))(\.(?:astype|view)\([\w.]+\)|\.copy\(\))")
_HUGGED = re.compile(r"[A-Za-z_][\w.]*")
"""What black leaves no space after, before **."""


class Unit:
    """The parameters, statements and results of a graph: the whole document, or one within it, in a function at a depth."""

    def __init__(self, module: Any, graph: Graph, depth: int, *, is_whole: bool = False) -> None:
        self.module, self.graph, self.depth, self.is_whole = module, graph, depth, is_whole
        self.names = python.Names(module.reserved)
        self.parameters = self.names.of_keys(i.key for i in graph.inputs)
        self.statements: list[str] = []
        self._section = 0
        self._hints: Sequence[str] = ()
        self._functions: dict[Any, str] = {}
        if is_whole:
            module.unit = self
        self.results = self._build()

    # What functions of operations ask for.

    def emit(self, statement: str, deeper: int = 0) -> None:
        """Add a statement; some are in the block of one before."""
        self.statements += python.laid_out(statement, 4 * (self.depth + deeper))

    def named(self, result: int | None = None) -> str:
        """A new name: of a result of the operation that of an output, if it is one; else the next number."""
        hint = "" if result is None or result >= len(self._hints) else self._hints[result]
        return self.names.new(hint) if hint else self.names.numbered("vd"[self._section])

    def assign(self, x: python.Text, result: int | None = None) -> python.Text:
        """A name for an expression, which may be a result of the operation."""
        name, code = self.named(result), x.code
        is_long = len(name) + len(code) + 3 + 4 * self.depth > python.WIDTH
        if is_long and (match := _METHOD.fullmatch(code)):  # black has another layout for chains of calls
            self.emit(f"{name} = {match[1]}")
            code = f"{name}{match[2]}"
        self.emit(f"{name} = {code}")
        return python.Text(name, python.ATOM, x.shape, x.is_number)

    def simple(self, x: python.Text) -> python.Text:
        """An expression that may stand twice."""
        return x if x.is_number or _NAME.fullmatch(x.code) else self.assign(x)

    def several(self, case: Any, code: str, order: Sequence[int] = ()) -> list[python.Text]:
        """Names for the results of an operation that a call gives: in their order, or in this one."""
        names = [self.named(k) for k in range(len(case.results))]
        targets = ", ".join([names[k] for k in order] or names)
        self.emit(f"{targets}{' = ' if names else ''}{code}")
        return [python.call(name, t.shape) for name, t in zip(names, case.results, strict=True)]

    def full(self, x: python.Text, type_: Any, level: int = 0) -> str:
        """An expression whose value has the shape and dtype of its type."""
        if x.is_number:
            return filled(x, type_)
        if x.shape != type_.shape:
            return f"np.broadcast_to({x.code}, {python.shape_text(type_.shape)})"
        return x.within(level)

    def function(self, key: Any, base: str) -> tuple[str, bool]:
        """The name of a function within this one, and whether it is new."""
        new = key not in self._functions
        if new:
            self._functions[key] = self.module.names.new(base)
        return self._functions[key], new

    def define(self, name: str, lines: Sequence[str]) -> None:
        """Put a function within this one, as black sets it apart."""
        before = self.statements[-1:] != [""] and (self.is_whole or self.statements)
        self.statements += [*[""] * bool(before), *lines, ""]

    # The steps.

    def write_sizes(self) -> None:
        """Read the sizes that inputs have, and refuse what does not fit together. Raises UnwrittenError."""
        for text in python.read_sizes(self.graph, self.parameters, self.module.sizes):
            if isinstance(text, str):
                self.emit(text)
            else:
                self.emit(f"if {text[0]}:")
                self.emit(f"raise ValueError(f{python.quoted(text[1])})", 1)

    def _build(self) -> list[python.Text]:
        graph = self.graph
        steps = needed_steps(graph, graph.outputs)
        hints = self._names_of(steps.outputs)
        own = {k for k, i in enumerate(graph.inputs) if has_open_size(i.type)} if self.module.sizes else ()
        for k in sorted({*steps.inputs, *own}) if self.is_whole else ():
            name, type_ = self.parameters[k], graph.inputs[k].type
            self.emit(f"{name} = np.asarray({name}, dtype={dtype_text(type_.dtype)})")
        if self.is_whole and self.module.sizes:
            self.write_sizes()
        values = [python.call(self.parameters[k], graph.inputs[k].type.shape) for k in steps.inputs]  # type: ignore[union-attr]
        code, start, args = steps.code.tolist(), steps.start.tolist(), steps.args.tolist()
        uses = Counter(args)
        uses.update(v for v in steps.outputs if v is not None)
        limit = _INLINED if self.depth < 4 else 12
        for step, number in enumerate(code):
            case = graph.cases[number]
            section = int(case.mask is not None)
            operands = [values[v] for v in args[start[step] : start[step + 1]]]
            first = len(values)
            self._hints = [hints.get(first + k, "") for k in range(len(case.results))] if hints else ()
            before = len(self.statements), self._section
            self._section = section
            try:
                made = self.module.written(self, case, operands)
            except (UnwrittenError, UndecidedSizeError) as error:
                node = step if steps.node is None else steps.node[step]
                raise UnwrittenError(f"node {node} ({case.op}): {error}") from None
            for k, x in enumerate(made if isinstance(made, list) else [made]):
                atom = _NAME.fullmatch(x.code) or (x.is_number and len(x.code) <= limit)
                keep = uses[first + k] == 1 and len(x.code) <= limit and not hints.get(first + k)
                values.append(x if atom or keep or not uses[first + k] else self.assign(x, k))
            self._begin(*before)
        return [
            python.Text(filled(zero(o.type), o.type), python.ATOM, o.type.shape) if v is None else self._result(values[v], o.type)  # type: ignore[union-attr]
            for v, o in zip(steps.outputs, graph.outputs, strict=True)
        ]

    def _result(self, x: python.Text, type_: Any) -> python.Text:
        if x.shape == type_.shape and not x.is_number:
            return x
        code = self.full(x, type_)  # of what NumPy broadcasts, elements share memory, and callers may write into them
        return python.call(f"{code}.copy()" if self.is_whole and not x.is_number else code, type_.shape)

    def _begin(self, n: int, section: int) -> None:
        """Say where derivatives begin, or end, above the statements from number n on."""
        if len(self.statements) == n:
            self._section = section
        elif self._section != section and self.is_whole:
            if self.statements[n] == "":
                del self.statements[n]
            before = n > 0 and self.statements[n - 1] != ""
            self.statements[n:n] = [*[""] * before, " " * 4 + _SECTIONS[self._section]]

    def _names_of(self, outputs: Sequence[int | None]) -> dict[int, str]:
        """What values that are outputs are called."""
        if not self.is_whole or self.module.is_single:
            return {}
        return {v: python.identifier(str(o.key)) for v, o in zip(outputs, self.graph.outputs, strict=True) if v is not None}


def elementwise(unit: Unit, case: Any, xs: list[python.Text]) -> Results | None:
    """The result of an operation that goes element by element, None if there is no expression."""
    dtypes = [t.dtype for t in case.operands]
    op = "add" if case.op == "add_cotangents" else case.op
    if (known := template(op, case.attrs, dtypes, case.results[0].dtype)) is None:
        return None
    text, level, needed = known
    if text == "{0}" or text == "{1}":
        return xs[int(text[1])]
    operands = list(xs)
    as_python = op in ("add", "sub", "mul") or (op == "div" and unit.module.is_counted(xs[1].code))
    if as_python and dtypes[0] == "f64" and all(x.is_number for x in xs):  # as Python computes it
        return python.Text(text.format(*[x.within(lv) for x, lv in zip(xs, needed, strict=True)]), level, (), is_number=True)
    chosen = op in ("select_n", "clamp")
    values = [k for k in range(len(xs)) if not (op == "select_n" and k == 0)]
    if all(xs[k].is_number for k in values) and (not chosen or case.results[0].dtype not in ("f64", "i64", "bool", "c128")):
        values = values[:1] if len(xs) > 1 else values
        for k in values:
            operands[k] = _typed(xs[k], case.operands[k])
    for k, x in enumerate(operands):
        if x.is_number and (f"{{{k}}}." in text or text.startswith("_") or (op == "select_n" and k == 0)):
            operands[k] = _typed(x, case.operands[k])
        elif text.count(f"{{{k}}}") > 1:
            operands[k] = unit.simple(x)
    shapes = {x.shape for x in operands}
    shape = shapes.pop() if len(shapes) == 1 else python.broadcast(*shapes)
    if text.startswith("_"):
        function = text.partition("(")[0]
        unit.module.use(function)
        if function == "_complex" and operands[0].shape != operands[1].shape:
            operands = [python.call(unit.full(x, t), t.shape) for x, t in zip(operands, case.operands, strict=True)]
            shape = case.results[0].shape
    if "special." in text:
        unit.module.has_special = True
    code = text.format(*[x.within(lv) for x, lv in zip(operands, needed, strict=True)])
    if "} ** " in text and _HUGGED.fullmatch(operands[0].code):
        code = code.replace(" ** ", "**")
    return python.Text(code, level, shape)


def _typed(x: python.Text, type_: TensorType) -> python.Text:
    """A number as one of NumPy, of its dtype."""
    return python.call(f"{dtype_text(type_.dtype)}({x.code})", ())
