"""A document as the text of a module: the nodes of all graphs, one after the other, in one function @main."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tidu_cli.adapters.stablehlo.writing.templates import Template, Templates
from tidu_cli.adapters.stablehlo.writing.values import UnwrittenError, arrays, constant_text, quoted, tensor_text, zeros_text
from tidu_cli.errors import TypeTextError
from tidu_cli.graph.graph import Case, Document, Externals, Graph, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import Type
from tidu_cli.graph.walk import forwards
from tidu_cli.lax.arrays.structural import literal_array
from tidu_cli.lax.builtin import vocabulary
from tidu_cli.watching import watch

Names = str | tuple[str, ...]
"""The names of the arrays that a value is: one, or those of a record."""


def module_text(document: Document) -> str:
    """The text of a document's module, without what makes a document of it. Raises UnwrittenError, which names graph and node."""
    return "".join(ModuleWriter(document).pieces())


class ModuleWriter:
    """A module in the making."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.constants: dict[str, str] = {}
        """The names of constants by their texts."""
        self.templates = Templates(vocabulary(document.cases), self.constant)
        self.lines: list[str] = []
        self.values: list[list[Names]] = []
        """The names of the values of each graph."""
        self.inputs: dict[Key, Names] = {}
        self.watched = watch("writing", sum(graph.n_nodes for graph in document.graphs))

    def constant(self, text: str) -> str:
        """The name of a constant."""
        return self.constants.setdefault(text, f"%c{len(self.constants)}")

    def pieces(self) -> Iterator[str]:
        """The text."""
        arguments = list(self._arguments())
        returned: list[str] = []
        for number, graph in enumerate(self.document.graphs):
            try:
                self._graph(number, graph)
                returned += [name for o in graph.outputs for name in self._output(number, graph, o)]
            except UnwrittenError as error:
                raise UnwrittenError(f"graph '{graph.name}'{error}") from None
        results = list(self._results())
        yield f"module @{quoted(self.document.head.name or 'graph')} {{\n"
        yield f"func.func public @main({', '.join(arguments)}) -> ({', '.join(text for text, _ in results)}) {{\n"
        yield from (f"{name} = {text}\n" for text, name in self.constants.items())
        yield from self.lines
        yield f"return {', '.join(returned)}{' : ' if returned else ''}{', '.join(type_ for _, type_ in results)}\n}}\n"
        yield from (f"{text}\n" for text in self.templates.functions())
        yield "}\n"

    def _arguments(self) -> Iterator[str]:
        n = 0
        for declared in self.document.free_inputs:
            names = []
            for attributes, type_ in _ports(declared.key, declared.type):
                names.append(f"%arg{n}")
                yield f"%arg{n}: {type_} {attributes}"
                n += 1
            self.inputs[declared.key] = _names(declared.type, names)

    def _results(self) -> Iterator[tuple[str, str]]:
        """The results with their attributes, and their types."""
        keys = iter(output_keys(self.document))
        for graph in self.document.graphs:
            for output in graph.outputs:
                for attributes, type_ in _ports(next(keys), output.type):
                    yield f"{type_} {attributes}", type_

    def _graph(self, number: int, graph: Graph) -> None:
        values = [self.inputs[i.key] if i.key in self.inputs else self._bound(i.key) for i in graph.inputs]
        self.values.append(values)
        lines, n = self.lines, len(self.lines)
        templates: dict[int, Template] = {}
        for node, (code, args, _, _) in enumerate(self.watched(forwards(graph, graph.args))):
            try:
                template = templates.get(code)
                if template is None:
                    case = graph.cases[code]
                    if case.op == "constant":
                        values.append(self._constant(case))
                        continue
                    template = templates[code] = self.templates.of(code, case)
                operands = [values[a] if a >= 0 else self._elsewhere(graph, number, a) for a in args]
            except UnwrittenError as error:
                raise UnwrittenError(f", node {node} ({graph.cases[code].op}): {error}") from None
            if template.is_plain:
                lines.append(f"%{n} = {template.text % tuple([operands[k] for k in template.slots])}\n")
                values.append(f"%{n}")
                n += 1
            else:
                n = self._put(template, operands, graph.cases[code].results, n)

    def _put(self, template: Template, operands: Sequence[Names], results: Sequence[Type], n: int) -> int:
        """Write a node of any form, under names from %n on. Gives the first number that is free then."""
        flat = [name for names in operands for name in ((names,) if isinstance(names, str) else names)]
        own: list[str] = []
        if template.text:
            given = template.text % tuple([flat[k] for k in template.slots])
            left = f"%{n}" if template.n_made == 1 else f"%{n}:{template.n_made}"
            self.lines.append(f"{left if template.n_made else ''}{' = ' if template.n_made else ''}{given}\n")
            own = [f"%{n}"] if template.n_made == 1 else [f"%{n}#{k}" for k in range(template.n_made)]
        made = iter([r if isinstance(r, str) else own[~r] if r < 0 else flat[r] for r in template.results])
        for type_ in results:
            self.values[-1].append(_names(type_, [next(made) for _ in arrays(type_)]))
        return n + bool(template.text)

    def _constant(self, case: Case) -> str:
        literal = case.attrs.value  # type: ignore[attr-defined]
        try:
            return self.constant(constant_text(literal_array(np, literal), literal.type))
        except TypeTextError as error:
            raise UnwrittenError(str(error)) from None

    def _elsewhere(self, graph: Graph, number: int, argument: int) -> Names:
        g, v = graph.place(number, argument)
        if g == Externals.DETACHED:
            raise UnwrittenError("reads a detached value, which the document does not define; resolve it first")
        return self.values[g][v]

    def _bound(self, key: Key) -> Names:
        graph, value = self.document.bound[key]
        return self.values[graph][value]

    def _output(self, number: int, graph: Graph, output: Output) -> Sequence[str]:
        """The names of an output's arrays."""
        if output.value is None:
            return [self.constant(zeros_text(leaf)) for _, leaf in arrays(output.type)]
        try:
            found = self.values[number][output.value] if output.value >= 0 else self._elsewhere(graph, number, output.value)
        except UnwrittenError as error:
            raise UnwrittenError(f", output '{output.key}': {error}") from None
        return (found,) if isinstance(found, str) else found


def output_keys(document: Document) -> list[Key]:
    """Keys for the outputs of all graphs: their own, which the head's keep, or where those are taken one that names the graph."""
    taken: set[Key] = set()
    found: dict[int, list[Key]] = {}
    last = len(document.graphs) - 1
    for number in (last, *range(last)):
        found[number] = []
        for output in document.graphs[number].outputs:
            key = output.key
            if key in taken:
                key = Key(f"{document.graphs[number].name}:{key.name}", key.path)
            while key in taken:
                key = Key(f"{key.name}'", key.path)
            taken.add(key)
            found[number].append(key)
    return [key for number in range(last + 1) for key in found[number]]


def _names(type_: Type, names: Sequence[str]) -> Names:
    return tuple(names) if len(names) != 1 or arrays(type_)[0][0] else names[0]


def _ports(key: Key, type_: Type) -> Iterator[tuple[str, str]]:
    """For each array of an input or output, what says which it is, and its type."""
    for path, leaf in arrays(type_):
        field = f", tidu.field = {quoted('.'.join(path))}" if path else ""
        times = f", tidu.type = {quoted(str(leaf))}" if "[" in leaf.dtype else ""
        yield f"{{tidu.key = {quoted(str(key))}{field}{times}}}", tensor_text(leaf)
