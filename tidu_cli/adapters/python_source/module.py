"""A document as a file of Python: one function of NumPy arrays, and the functions and constants that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from tidu_cli.adapters.python_source import text as python
from tidu_cli.adapters.python_source.arrays import ARRAYS, Results, zeros
from tidu_cli.adapters.python_source.elements import dtype_text, element
from tidu_cli.adapters.python_source.indexing import INDEXING
from tidu_cli.adapters.python_source.matrices import MATRICES
from tidu_cli.adapters.python_source.unit import CONTROL, Unit, elementwise
from tidu_cli.adapters.source_code import HELPERS, MARK, UnwrittenError, alone
from tidu_cli.checking.numeric.trials import one_node_document
from tidu_cli.errors import MissingRuleError, Remedy, UndecidedSizeError
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Case, Document, Graph
from tidu_cli.graph.open_sizes import is_open_case, names_in
from tidu_cli.graph.types import ITEMSIZE, TensorType
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.recording.trace import expanded
from tidu_cli.rules.vocabulary import PrimitiveSet

_WRITERS = {**ARRAYS, **INDEXING, **MATRICES, **CONTROL}
_TOLD = 60
"""As much of a key is in a docstring."""


class Module:
    """A file in the making: the function of a document, and what stands before it."""

    def __init__(self, document: Document) -> None:
        self.primitives = vocabulary(document.cases)
        graph = alone(document)
        self.sizes: dict[str, Any] = {}
        self.helpers: dict[str, None] = {}
        self.constants: list[str] = []
        self.functions: list[str] = []
        self.has_special = False
        self._defined: dict[Case, str] = {}
        self.name = python.identifier(graph.name, "jvp", "vjp")
        self.is_single = [str(o.key) for o in graph.outputs] == [_single(graph)]
        try:
            self._require([*[i.type for i in graph.inputs], *[o.type for o in graph.outputs]])
            if names_in(graph):
                graph, self.sizes = python.named_sizes(graph, self.primitives, [self.name])
            self.graph, self.reserved = graph, {self.name, *self.sizes}
            self.names = python.Names({*self.reserved, *HELPERS})
            self.unit = Unit(self, graph, 1, is_whole=True)
        except UnwrittenError as error:
            raise UnwrittenError(f"graph '{graph.name}': {error}; or write it with ", Remedy("format", "msgpack")) from None

    # What units ask for.

    def written(self, unit: Unit, case: Case, xs: list[python.Text]) -> Results:
        """The results of an operation. Raises UnwrittenError."""
        self._require([*case.operands, *case.results])
        if case.op != "constant" and all(t.size == 0 for t in case.results) and case.results:
            return list(map(zeros, case.results))
        if case.op in _WRITERS:
            return _WRITERS[case.op](unit, case, xs)
        made = elementwise(unit, case, xs)
        return self._by_definition(unit, case, xs) if made is None else made

    def is_counted(self, code: str) -> bool:
        """Whether it is the name of a size that is not 0."""
        return code in self.sizes and self.sizes[code].least > 0

    def use(self, helper: str) -> str:
        """A function that the file then has; gives its name."""
        self.helpers[helper] = None
        return helper

    def constant(self, dtype: str, array: Any) -> str:
        """The name of an array of constants."""
        name = f"C{len(self.constants) + 1}"
        lines = [""]
        for text in map(partial(element, dtype), array.reshape(-1)):
            if len(lines[-1]) + len(text) + 5 > python.WIDTH:
                lines.append("")
            lines[-1] += f"{' ' if lines[-1] else ''}{text}"
        body = "\n".join(f"    {line}" for line in lines)
        read = "i8" if dtype == "bool" else dtype
        made = f'{name} = np.array(\n    """\n{body}\n    """.split(),\n    dtype={dtype_text(read)},\n)'
        if dtype == "bool":
            made += f"\n{name} = {name} != 0"
        if array.ndim > 1:
            made += f"\n{name} = {name}.reshape({', '.join(map(str, array.shape))})"
        self.constants.append(made)
        return name

    def inner(self, unit: Unit, graph: Graph, base: str, place: str) -> str:
        """The name of a function within that of a unit, of a graph in attrs."""
        name, new = unit.function(graph, base)
        if new:
            try:
                made = Unit(self, graph, unit.depth + 1)
            except UnwrittenError as error:
                raise UnwrittenError(f"{place}: {error}") from None
            unit.define(name, self._lines(name, made))
        return name

    def _by_definition(self, unit: Unit, case: Case, xs: list[python.Text]) -> Results:
        """A call of the function that computes an operation as it is defined."""
        case = replace(case, mask=None)
        primitive = self.primitives[case.op]
        if case not in self._defined:
            if primitive.in_terms_of_others is None:
                opaque = primitive.evaluation.opaque
                raise UnwrittenError(f"NumPy source has no {case.op}" + (f", which {opaque}" if opaque else ""))
            is_open = is_open_case(case)  # it reads sizes where the whole function has them
            try:
                made = Unit(self, expanded(self.primitives, case), 1 + is_open)
            except (MissingRuleError, UndecidedSizeError, UnwrittenError) as error:
                raise UnwrittenError(f"its definition: {error}") from None
            name = self._defined[case] = self.names.new(f"_{python.identifier(case.op)}")
            if is_open:
                self.unit.define(name, self._lines(name, made))
            else:
                self.functions.append("\n".join(self._lines(name, made)))
        arguments = [unit.full(x, t) for x, t in zip(xs, case.operands, strict=True)]
        code = f"{self._defined[case]}({', '.join(arguments)})"
        return python.call(code, case.results[0].shape) if len(case.results) == 1 else unit.several(case, code)  # type: ignore[union-attr]

    def _require(self, types: Sequence[Any]) -> None:
        """Raises UnwrittenError for what NumPy has no dtype of."""
        for type_ in types:
            if not isinstance(type_, TensorType):
                raise UnwrittenError(
                    f"{type_ or 'a detached operand'}: NumPy source is written of arrays alone; write fields apart"
                )
            if type_.dtype not in ITEMSIZE or type_.dtype == "bf16":
                raise UnwrittenError(
                    f"{type_}: NumPy source is written of bool, integers, floats and complex numbers; convert it first"
                )

    # The texts.

    def _lines(self, name: str, unit: Unit, doc: Iterable[str] = ()) -> list[str]:
        """A function."""
        pad = 4 * (unit.depth - 1)
        return [
            *python.laid_out(f"def {name}({', '.join(unit.parameters)}):", pad),
            *[f"{' ' * (pad + 4)}{line}".rstrip() for line in doc],
            *unit.statements,
            *python.laid_out(f"return {self._returned(unit)}", pad + 4),
        ]

    def _returned(self, unit: Unit) -> str:
        codes = [x.code for x in unit.results]
        if not unit.is_whole:
            whole = ", ".join(codes)
            return whole if len(codes) == 1 or (codes and sum(map(len, codes)) < 60) else f"({whole})"
        if self.is_single:
            return codes[0]
        entries = [f"{python.quoted(str(o.key))}: {code}" for o, code in zip(self.graph.outputs, codes, strict=True)]
        return f"{{{', '.join(entries)}}}"

    def source(self) -> Iterator[str]:
        """The text of the file."""
        lines = self._lines(self.name, self.unit, self._doc())
        yield MARK
        blocks = [*self.constants, *(HELPERS[name] for name in self.helpers), *self.functions, *lines]
        imports = "import numpy as np\n" * any("np." in text for text in blocks) + "from scipy import special\n" * self.has_special
        yield f"\n{imports}" if imports else ""
        yield from (f"\n{text}\n" for text in self.constants)
        yield from (f"\n\n{text}\n" for text in (*(HELPERS[name] for name in self.helpers), *self.functions))
        yield "\n\n"
        yield from (f"{line}\n" for line in lines)

    def _doc(self) -> Iterator[str]:
        graph = self.graph
        yield f'"""{_told(graph.name).strip() or "A graph"}.'
        if graph.inputs:
            yield ""
            yield "Args:"
        for name, given in zip(self.unit.parameters, graph.inputs, strict=True):
            key = str(given.key)
            yield f"    {name}: {_told(key)}, {_type(given.type)}" if key != name else f"    {name}: {_type(given.type)}"
        yield ""
        yield "Returns:"
        for port in graph.outputs:
            yield f"    {_told(str(port.key))}: {_type(port.type)}"
        if not graph.outputs:
            yield "    nothing"
        yield '"""'


def _single(graph: Graph) -> str:
    """What `tidu build` calls the one result of a function."""
    return "out" if any(str(i.key) == "y" for i in graph.inputs) else "y"


def _told(text: str) -> str:
    """A text in a docstring, which nothing in it ends."""
    short = text if len(text) <= _TOLD else f"{text[:_TOLD]}..."
    return python.quoted(short)[1:-1]


def _type(type_: Any) -> str:
    dtype = dtype_text(type_.dtype).removeprefix("np.").rstrip("_")
    return f"{dtype}, shape {python.tuple_text(map(python.size_text, type_.shape))}" if type_.shape else dtype


def written_as(case: Case, primitives: PrimitiveSet) -> str:
    """What a case is written as, in a few words. Raises UnwrittenError."""
    module = Module(one_node_document(case, primitives))
    return "its definition" if module.functions else "NumPy"
