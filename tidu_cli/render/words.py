"""A document in words: names for its values, a formula for each node, and the head's nodes told as the steps of a sweep."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tidu_cli.graph.graph import Case, Document, Externals, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.primitives.builtin import BUILTIN
from tidu_cli.render.picture import Flow, Picture, Place, accumulates, place_of, results
from tidu_cli.render.text import attrs_text, key_words, name

_LETTERS = {Flow.PRIMAL: "v", Flow.TANGENT: "t", Flow.COTANGENT: "c"}
_VARIABLE = re.compile(r"(?<!\w)[xyz](?!\w)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


class Words:
    """The names of a picture's values, and what is said of its nodes."""

    def __init__(self, shown: Picture) -> None:
        self.document: Document = shown.document
        self.flows = shown.flows
        self.names = _names(shown.document, shown.flows)

    def name(self, place: Place) -> str:
        """What a value is called: `x`, `v1`, `c3`."""
        if place[0] == Externals.DETACHED:
            return self.document.detached[place[1]].digest[:15] + "..."
        return self.names[place[0]][place[1]]

    def places(self, g: int, node: int) -> list[Place]:
        """The values that a node reads."""
        graph = self.document.graphs[g]
        return [place_of(graph, g, argument) for argument in graph.operands(node)]

    def formula(self, g: int, node: int, numbers: Mapping[Place, str] | None = None) -> str:
        """What a node computes, of the names of its operands: `c2 + c1`; or of their `numbers`, where each has one, else ''."""
        case, places = self.document.graphs[g].case(node), self.places(g, node)
        if numbers is None:
            return _formula(case, [self.name(place) for place in places])
        if not all(place in numbers for place in places):
            return ""
        return _formula(case, [f"({text})" if (text := numbers[place]).startswith("-") else text for place in places])

    def assignment(self, g: int, node: int) -> str:
        """`c3 = c2 + c1`."""
        left = ", ".join(self.names[g][value] for value in results(self.document.graphs[g], node))
        return f"{left} = {self.formula(g, node)}" if left else self.formula(g, node)

    def captions(self) -> Iterator[str]:
        """What each node of the head does, one sentence a node, in order."""
        g, graph = len(self.document.graphs) - 1, self.document.head
        contributions = _Contributions(graph, self.flows[-1])
        produced: dict[int, list[str]] = {}
        for output in graph.outputs:
            if output.value is not None and output.value >= 0:
                produced.setdefault(output.value, []).append(key_words(output.key))
        for node in range(graph.n_nodes):
            values = results(graph, node)
            told = contributions.told(node) or self._passing(g, node)
            whole = [words for value in values for words in produced.get(value, ())]
            done = f"; this is {' and '.join(whole)}" if whole and not told.endswith("last contribution") else ""
            yield f"{self.assignment(g, node)}: {told}{done}"

    def _passing(self, g: int, node: int) -> str:
        case, places = self.document.graphs[g].case(node), self.places(g, node)
        if case.mask is None:
            return BUILTIN[case.op].summary.partition(";")[0] or case.op
        active = [self.name(place) for place, on in zip(places, case.mask, strict=True) if on]
        held = [self.name(place) for place, on in zip(places, case.mask, strict=True) if not on]
        backward = any(self.flows[g][value] is Flow.COTANGENT for value in results(self.document.graphs[g], node))
        if case.op == BUILTIN.add and len(active) > 1:
            return f"the {'cotangents' if backward else 'tangents'} {_and(active)} add up"
        way = "goes back" if backward else "goes forward"
        by = f", with {_and(held)} held fixed" if held else ""
        return f"{_and(active)} {way if len(active) == 1 else way.replace('goes', 'go')} through {case.op}{by}"


class _Contributions:
    """Which nodes of the head sum up the cotangent of which input, and with which contribution they do.

    Accumulation is a chain: each add takes the sum so far first, and then what arrives.
    """

    def __init__(self, graph: Graph, flows: Sequence[Flow]) -> None:
        self.graph = graph
        self.n_inputs = len(graph.inputs)
        self.uses: dict[int, list[tuple[str, int]]] = {}  # of a value: the cotangents that it contributes to, and as which one
        self.adds: dict[int, tuple[str, int, bool]] = {}
        self.accumulating = {
            node for node in range(graph.n_nodes) if accumulates(graph.case(node), flows[graph.first_result(node)])
        }
        for output in graph.outputs:
            if output.value is not None and output.value >= 0 and output.key.path[-1:] and output.key.path[-1] < 0:
                self._chain(output.value, key_words(Key(output.key.name, output.key.path[:-1])))
        for node in sorted(self.accumulating, reverse=True):
            if node not in self.adds:
                self._chain(graph.first_result(node), "")

    def _chain(self, value: int, of: str) -> None:
        nodes = []
        while value >= self.n_inputs and (node := self.graph.producer(value)[0]) in self.accumulating and node not in self.adds:
            nodes.append(node)
            value = self.graph.operands(node)[0]
        whose = f"the cotangent of {of}" if of else "the cotangent of an intermediate value"
        if value >= 0 and (nodes or of):
            self.uses.setdefault(value, []).append((whose, 1 if nodes else 0))
        for k, node in enumerate(reversed(nodes)):
            self.adds[node] = whose, k + 2, k == len(nodes) - 1
            arriving = self.graph.operands(node)[1]
            self.uses.setdefault(arriving, []).append((whose, k + 2))

    def told(self, node: int) -> str:
        """What a node has to do with accumulation, or ''."""
        if node in self.adds:
            whose, number, last = self.adds[node]
            return f"{whose} gets its {_ordinal(number)}{' and last' if last else ''} contribution"
        if not self.graph.case(node).results:
            return ""
        uses = self.uses.get(self.graph.first_result(node), [])
        counted = [(whose, number) for whose, number in uses if number]
        told = []
        for whose in dict.fromkeys(whose for whose, _ in counted):
            numbers = [_ordinal(number) for w, number in counted if w == whose]
            told.append(f"the {_and(numbers)} contribution to {whose}")
        return _and(told)


def _names(document: Document, flows: Sequence[Sequence[Flow]]) -> list[list[str]]:
    taken: Counter[str] = Counter()
    names: list[list[str]] = []
    for g, graph in enumerate(document.graphs):
        residual = not graph.inputs and not graph.outputs and g < len(document.graphs) - 1
        own = []
        for value, flow in enumerate(flows[g]):
            if value < len(graph.inputs) and flow is Flow.PRIMAL:
                own.append(name(graph.inputs[value].key))
                continue
            candidate = f"{'r' if residual else _LETTERS[flow]}{value}"
            own.append(f"{name(graph.name)}:{candidate}" if taken[candidate] else candidate)
        taken.update({text for text in own if ":" not in text})
        names.append(own)
    return names


def _formula(case: Case, operands: Sequence[str]) -> str:
    """The primitive's formula with these operands, where it is one of x, y and z; else `op(a, b)`."""
    formula = BUILTIN[case.op].formula
    if formula == "x y":
        formula = "x · y"
    variables = sorted(set(_VARIABLE.findall(formula)))
    given = dict(zip(variables, operands, strict=False))
    for variable in variables[len(operands) :]:
        value = case.attrs.to_data(binary=False).get(variable)
        if isinstance(value, int):
            given[variable] = str(value)
    plain = len(formula) <= 16 and len(_WORD.findall(formula)) <= 1 and formula.isascii() | ("·" in formula)
    if plain and variables and len(operands) <= len(variables) == len(given):
        return _VARIABLE.sub(lambda match: given[match[0]], formula)
    attrs = attrs_text(case)
    if not operands:
        return attrs.removeprefix("value=") or case.op
    return f"{case.op}({', '.join(operands)})"


def _ordinal(number: int) -> str:
    return _ORDINALS[number - 1] if number <= len(_ORDINALS) else f"{number}th"


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
