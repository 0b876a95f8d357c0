"""A document as the text of a module: the nodes of all graphs, one after the other, in one function @main."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from tidu_cli.adapters.stablehlo import text as mlir
from tidu_cli.adapters.stablehlo.lowering import Body, Lowered, lowered
from tidu_cli.errors import TypeTextError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Case, Document, Externals, Graph, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.open_sizes import has_open_size, open_names
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.lax.arrays.structural import literal_array
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.watching import watch

# How the nodes of a case are written: as one operation, or as the call of a function of the module's.


_NAME = re.compile(r"%[\w$.\-]+")
"""Names of values in text of MLIR."""


class Template(Frozen):
    """The text of an operation with a %s for each name that is put in: those of operands with these numbers.

    It makes `n_made` values. Those of a node are `results`: these by number, from ~0 on downwards; operands; or names of constants.
    An empty text is of no operation.
    """

    text: str
    slots: Sequence[int]
    n_made: int
    results: Sequence[int | str]
    is_plain: bool
    """Whether the operation makes one array, which is the value of the node, of arrays, as most do."""

    @classmethod
    def of(cls, case: Case, text: str, slots: Sequence[int], n_made: int, results: Sequence[int | str]) -> Template:
        """The template of a case."""
        flat = all(isinstance(t, TensorType) for t in (*case.operands, *case.results))
        return cls(text, slots, n_made, results, flat and bool(text) and list(results) == [~0])


class Templates:
    """The templates of cases, and the functions that they call. `constant` names a constant of @main, which it has the text of."""

    def __init__(self, primitives: PrimitiveSet, constant: Callable[[str], str]) -> None:
        self.primitives = primitives
        self.constant = constant
        self._functions: dict[tuple[str, object, int], str] = {}
        """The names of functions by their texts, in which they have none; of open sizes also by whose they are, and a number."""
        self._made: dict[object, Template] = {}
        self._taken = {"main", mlir.WRAPPED}
        self._numbers: Counter[str] = Counter()

    def of(self, number: object, case: Case) -> Template:
        """The template of a case, by its number, or what else there is once for it. Raises UnwrittenError."""
        if number not in self._made:
            lowering = lowered(case, self.primitives)
            self._made[number] = self._call(case, lowering) if lowering.body is None else self._copy(case, lowering.body)
        return self._made[number]

    def functions(self) -> Iterator[str]:
        """The texts of all functions that are called."""
        for (text, _, _), name in self._functions.items():
            yield text.replace("@", f"@{name}", 1)

    def _copy(self, case: Case, body: Body) -> Template:
        """The template of one operation, which is copied as it is."""
        names: dict[str, int | str] = {name: mlir.size_value(text) for name, text in body.sizes.items()}
        names |= {name: k for k, name in enumerate(body.arguments)}
        names |= {name: self.constant(text) for name, text in body.constants.items()}
        slots: list[int] = []

        def put(match: re.Match[str]) -> str:
            known = names.get(match[0])
            if not isinstance(known, int):
                return f"%{known or f'%in_{match[0][1:]}'}"  # a constant, or a value of a region, which has a name of its own
            slots.append(known)
            return "%s"

        text = _NAME.sub(put, body.text)
        own = names | {name: ~k for k, name in enumerate(body.made)}
        return Template.of(case, text, slots, len(body.made), [own[name] for name in body.returned])

    def _call(self, case: Case, lowering: Lowered) -> Template:
        """The template of a call."""
        *called, (_, text) = lowering.functions
        name = self.named([*called, (case.op, text)], case if lowering.sizes else None)[-1]
        given, made = (
            [mlir.tensor_text(leaf) for t in types if t for _, leaf in mlir.arrays(t)] for types in (case.operands, case.results)
        )
        operands = [*[f"%{mlir.size_value(text)}" for text in lowering.sizes], *["%s"] * len(given)]
        types = [*[mlir.SIZE] * len(lowering.sizes), *given]
        text = f"func.call @{name}({', '.join(operands)}) : ({', '.join(types)}) -> ({', '.join(made)})"
        return Template.of(case, text, range(len(given)), len(made), [~k for k in range(len(made))])

    def named(self, functions: Sequence[tuple[str, str]], of: object = None) -> Sequence[str]:
        """The names of functions, of which each calls only those before it; those of something with open sizes are its own.

        StableHLO's refinement of shapes takes a function to be called with arrays of one shape, which its text does not say.
        """
        names: list[str] = []
        for number, (wished, text) in enumerate(functions):
            for k, name in enumerate(names):
                text = text.replace(f"@{mlir.CALLED.format(k)}", f"@{name}")
            key = (text, None, 0) if of is None else (text, of, number)
            if key not in self._functions:
                self._functions[key] = self._name(wished)
            names.append(self._functions[key])
        return names

    def _name(self, wished: str) -> str:
        base = re.sub(r"\W", "_", wished)
        name = base
        while name in self._taken:
            self._numbers[base] += 1
            name = f"{base}_{self._numbers[base]}"
        self._taken.add(name)
        return name


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
        wrapped = self._wrapped([type_ for _, type_ in arguments])
        returned: list[str] = []
        for number, graph in enumerate(self.document.graphs):
            try:
                self._graph(number, graph)
                returned += [name for o in graph.outputs for name in self._output(number, graph, o)]
            except mlir.UnwrittenError as error:
                raise mlir.UnwrittenError(f"graph '{graph.name}'{error}") from None
        results = list(self._results())
        types = ", ".join(type_ for _, type_ in results)
        ports = ", ".join(text for text, _ in arguments), ", ".join(text for text, _ in results)
        yield f"module @{mlir.quoted(self.document.head.name or 'graph')} {{\n"
        yield f"func.func public @main({ports[0]}) -> ({ports[1]}) {{\n"
        if wrapped:
            yield from wrapped.pieces([type_ for _, type_ in results])
        yield from (f"{name} = {text}\n" for text, name in self.constants.items())
        yield from self.lines
        yield f"return {', '.join(returned)}{' : ' if returned else ''}{types}\n}}\n"
        yield from (f"{text}\n" for text in self.templates.functions())
        yield "}\n"

    def _wrapped(self, arguments: Sequence[str]) -> Any:
        """What stands in @main where sizes are open: the function of the nodes is another then, which it calls."""
        if not open_names(self.document):
            return None
        from tidu_cli.adapters.stablehlo.open_sizes import Wrapper  # which fixed sizes do without

        try:
            return Wrapper(self.document, arguments, lambda functions: self.templates.named(functions, mlir.WRAPPED))
        except mlir.UnwrittenError as error:
            raise mlir.UnwrittenError(f"graph '{self.document.head.name}'{error}") from None

    def _arguments(self) -> Iterator[tuple[str, str]]:
        """The arguments with their attributes, and their types."""
        n = 0
        for declared in self.document.free_inputs:
            names = []
            for attributes, type_ in _ports(declared.key, declared.type):
                names.append(f"%arg{n}")
                yield f"%arg{n}: {type_} {attributes}", type_
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
            except mlir.UnwrittenError as error:
                raise mlir.UnwrittenError(f", node {node} ({graph.cases[code].op}): {error}") from None
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
            self.values[-1].append(_names(type_, [next(made) for _ in mlir.arrays(type_)]))
        return n + bool(template.text)

    def _constant(self, case: Case) -> str:
        literal = case.attrs.value  # type: ignore[attr-defined]
        try:
            return self.constant(mlir.constant_text(literal_array(np, literal), literal.type))
        except TypeTextError as error:
            raise mlir.UnwrittenError(str(error)) from None

    def _elsewhere(self, graph: Graph, number: int, argument: int) -> Names:
        g, v = graph.place(number, argument)
        if g == Externals.DETACHED:
            raise mlir.UnwrittenError("reads a detached value, which the document does not define; resolve it first")
        return self.values[g][v]

    def _bound(self, key: Key) -> Names:
        graph, value = self.document.bound[key]
        return self.values[graph][value]

    def _output(self, number: int, graph: Graph, output: Output) -> Sequence[str]:
        """The names of an output's arrays."""
        if output.value is None:
            return [self._zeros(leaf) for _, leaf in mlir.arrays(output.type)]
        try:
            names = self.values[number][output.value] if output.value >= 0 else self._elsewhere(graph, number, output.value)
        except mlir.UnwrittenError as error:
            raise mlir.UnwrittenError(f", output '{output.key}': {error}") from None
        return (names,) if isinstance(names, str) else names

    def _zeros(self, type_: TensorType) -> str:
        """The name of an array of zeros, which a node of its own makes if its sizes are open."""
        if not has_open_size(type_):
            return self.constant(mlir.zeros_text(type_))
        primitives, scalar = self.templates.primitives, type_.with_shape(())
        attrs = primitives.parse_attrs("broadcast_in_dim", {"shape": list(type_.shape), "broadcast_dimensions": []})
        case = primitives.case("broadcast_in_dim", attrs, None, [scalar])
        self._put(self.templates.of(case, case), [self.constant(mlir.zeros_text(scalar))], [type_], len(self.lines))
        (zeros,) = self.values[-1][-1:]
        return cast(str, zeros)


def output_keys(document: Document) -> list[Key]:
    """Keys for the outputs of all graphs: their own, which the head's keep, or where those are taken one that names the graph."""
    taken: set[Key] = set()
    keys: dict[int, list[Key]] = {}
    last = len(document.graphs) - 1
    for number in (last, *range(last)):
        keys[number] = []
        for output in document.graphs[number].outputs:
            key = output.key
            if key in taken:
                key = Key(f"{document.graphs[number].name}:{key.name}", key.path)
            while key in taken:
                key = Key(f"{key.name}'", key.path)
            taken.add(key)
            keys[number].append(key)
    return [key for number in range(last + 1) for key in keys[number]]


def _names(type_: Type, names: Sequence[str]) -> Names:
    return tuple(names) if len(names) != 1 or mlir.arrays(type_)[0][0] else names[0]


def _ports(key: Key, type_: Type) -> Iterator[tuple[str, str]]:
    """For each array of an input or output, what says which it is, and its type."""
    for path, leaf in mlir.arrays(type_):
        field = f", tidu.field = {mlir.quoted('.'.join(path))}" if path else ""
        times = f", tidu.type = {mlir.quoted(str(leaf))}" if "[" in leaf.dtype else ""
        yield f"{{tidu.key = {mlir.quoted(str(key))}{field}{times}}}", mlir.tensor_text(leaf)
