"""A document in words: names for its values, a formula for each node, and the head's nodes told as the steps of a sweep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tidu_cli.graph.graph import Document, Externals, Graph, Place
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.render.folding import key_words, name
from tidu_cli.render.phrases import phrase
from tidu_cli.render.picture import Flow, Item, Kind, Picture, accumulating, op_run
from tidu_cli.rules.catalogue import Caption

_LETTERS = {Flow.PRIMAL: "v", Flow.TANGENT: "t", Flow.COTANGENT: "c"}
_NAMES = 3
"""As many fields a value is said to be, where it is many."""
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


class Words:
    """The names of a picture's values, and what is said of its nodes."""

    def __init__(self, shown: Picture, owners: Mapping[int, Sequence[Place]] | None = None) -> None:
        """`owners` are, where known, the values whose cotangents the head's values are."""
        self.document: Document = shown.document
        self.primitives = vocabulary(shown.document.cases)
        self.items = shown.items
        self.owners = owners or {}
        self.flows = shown.flows
        self.frames, self.graph = shown.frames, shown.graph
        self.names = _names(shown)

    def name(self, place: Place) -> str:
        """What a value is called: `x`, `v1`, `c3`."""
        if place[0] == Externals.DETACHED:
            return self.document.detached[place[1]].digest[:15] + "..."
        return self.names[place[0]][place[1]]

    def places(self, g: int, node: int) -> list[Place]:
        """The values that a node reads."""
        graph = self.graph(g)
        return [graph.place(g, argument) for argument in graph.operands(node)]

    def formula(self, g: int, node: int, numbers: Mapping[Place, str] | None = None) -> str:
        """What a node computes, of the names of its operands: `c2 + c1`; or of their `numbers`, where each has one, else ''."""
        if numbers is None:
            return self.phrase(g, node).formula
        case, places = self.graph(g).case(node), self.places(g, node)
        if not all(place in numbers for place in places):
            return ""
        texts = [f"({text})" if (text := numbers[place]).startswith("-") else text for place in places]
        return phrase(case, texts, self.primitives).formula

    def phrase(self, g: int, node: int) -> Caption:
        """What a node does, of the names of its operands."""
        return phrase(self.graph(g).case(node), [self.name(place) for place in self.places(g, node)], self.primitives)

    def assignment(self, g: int, node: int) -> str:
        """`c3 = c2 + c1`."""
        left = self.results(g, node)
        return f"{left} = {self.formula(g, node)}" if left else self.formula(g, node)

    def results(self, g: int, node: int) -> str:
        """The names of what a node makes: `c3`."""
        return ", ".join(self.names[g][value] for value in self.graph(g).results(node))

    def captions(self) -> Iterator[tuple[Item, str]]:
        """What each node of the head does, one sentence a node, in order; of nodes that are drawn as one, one sentence for all."""
        g, graph = len(self.document.graphs) - 1, self.document.head
        produced: dict[int, list[str]] = {}
        for output in graph.outputs:
            if output.value is not None and output.value >= 0:
                produced.setdefault(output.value, []).append(key_words(output.key))
        self._name_parts(graph, produced)
        contributions = _Contributions(graph, self.flows[g], produced, self._whose)
        for item in self.items:
            if item.graph != g or item.kind not in (Kind.NODE, Kind.COLLAPSED):
                continue
            values, told = graph.results(item.index), contributions.told(item.index)
            whole = [words for value in values for words in produced.get(value, ())] or [
                words for value in values if not contributions.sums(item.index) and (words := self._whose(value))
            ]
            done = f"; this is {_and(whole)}" if whole and not told.endswith("last contribution") else ""
            if item.nodes:
                subject = f"{self.results(g, item.index)}, by {len(item.nodes)} nodes ({op_run(graph, item.nodes)})"
                yield item, f"{subject}{f': {told}' if told else ''}{done}"
            else:
                yield item, f"{self.assignment(g, item.index)}: {told or self._passing(g, item.index)}{done}"

    def _name_parts(self, graph: Graph, known: dict[int, list[str]]) -> None:
        """What becomes a field of a record of which something is `known` is that of the field: `the cotangent of p.x`."""
        codes = {code for code in set(graph.code) if graph.cases[code].op == self.primitives.record}
        for node in range(graph.n_nodes - 1, -1, -1) if codes else ():
            if graph.code[node] not in codes:
                continue
            attrs: Any = graph.case(node).attrs
            value = graph.firsts[node]
            whole = known.get(value) or [f"the cotangent of {self.name(place)}" for place in self.owners.get(value, ())[:1]]
            for field, argument in zip(attrs.names, graph.operands(node), strict=True):
                if argument >= 0 and whole and len(named := known.setdefault(argument, [])) < _NAMES:
                    named += [f"{words}.{field}" for words in whole[:_NAMES]]

    def _whose(self, value: int) -> str:
        """`the cotangent of v1`, of a value of the head, if it is known to be that; else ''."""
        owners = self.owners.get(value, ())
        names = _and([self.name(place) for place in owners[:3]]) + " and others" * (len(owners) > 3)
        return f"the cotangent of {names}" if owners else ""

    def _passing(self, g: int, node: int) -> str:
        case, places = self.graph(g).case(node), self.places(g, node)
        if case.mask is None:
            return self.phrase(g, node).what
        active = [self.name(place) for place, on in zip(places, case.mask, strict=True) if on]
        held = [self.name(place) for place, on in zip(places, case.mask, strict=True) if not on]
        backward = any(self.flows[g][value] is Flow.COTANGENT for value in self.graph(g).results(node))
        if case.op == self.primitives.add and len(active) > 1:
            return f"the {'cotangents' if backward else 'tangents'} {_and(active)} add up"
        way = f"{'goes' if len(active) == 1 else 'go'} {'back' if backward else 'forward'}{self.phrase(g, node).passing}"
        by = f", with {_and(held)} held fixed" if held else ""
        return f"{_and(active)} {way}{by}"


class _Contributions:
    """Which nodes of the head sum up the cotangent of which input, and with which contribution they do.

    Accumulation is a chain: each add takes the sum so far first, and then what arrives.
    """

    def __init__(
        self, graph: Graph, flows: Sequence[Flow], produced: Mapping[int, Sequence[str]], whose: Callable[[int], str]
    ) -> None:
        """`produced` says what values are that outputs give, or parts of these; `whose` what is known of any other."""
        self.graph = graph
        self.n_inputs = len(graph.inputs)
        self.uses: dict[int, list[tuple[str, int]]] = {}  # of a value: the cotangents that it contributes to, and as which one
        self.adds: dict[int, tuple[str, int, bool]] = {}
        self.accumulating = accumulating(graph, flows)
        for value, words in produced.items():
            if flows[value] is Flow.COTANGENT:
                for one in words:
                    self._chain(value, one)
        for node in sorted(self.accumulating, reverse=True):
            if node not in self.adds:
                self._chain(graph.firsts[node], whose(graph.firsts[node]) or "the cotangent of an intermediate value")

    def _chain(self, value: int, whose: str) -> None:
        nodes = []
        while value >= self.n_inputs and (node := self.graph.producer(value)[0]) in self.accumulating and node not in self.adds:
            nodes.append(node)
            value = self.graph.operands(node)[0]
        if value >= 0 and nodes:
            self.uses.setdefault(value, []).append((whose, 1))
        for k, node in enumerate(reversed(nodes)):
            self.adds[node] = whose, k + 2, k == len(nodes) - 1
            arriving = self.graph.operands(node)[1]
            self.uses.setdefault(arriving, []).append((whose, k + 2))

    def sums(self, node: int) -> bool:
        """Whether a node adds a contribution: then `told` says to what."""
        return node in self.adds

    def told(self, node: int) -> str:
        """What a node has to do with accumulation, or ''."""
        if node in self.adds:
            whose, number, last = self.adds[node]
            return f"{whose} gets its {_ordinal(number)}{' and last' if last else ''} contribution"
        if not self.graph.case(node).results:
            return ""
        uses = self.uses.get(self.graph.firsts[node], [])
        told = []
        for whose in dict.fromkeys(whose for whose, _ in uses):
            numbers = [_ordinal(number) for w, number in uses if w == whose]
            told.append(f"the {_and(numbers)} contribution to {whose}")
        return _and(told)


def _names(shown: Picture) -> list[list[str]]:
    """Names of values. Those of graphs within nodes are like those of others: each has a picture of its own."""
    taken: Counter[str] = Counter()
    names: list[list[str]] = []
    for g, frame in enumerate(shown.frames):
        graph = frame.graph
        if frame.owner is not None:
            taken = Counter()
        residual = not graph.inputs and not graph.outputs and g < len(shown.document.graphs) - 1
        own = []
        for value, flow in enumerate(shown.flows[g]):
            if value < len(graph.inputs) and (flow is Flow.PRIMAL or frame.owner is not None):
                own.append(name(graph.inputs[value].key))
                continue
            candidate = f"{'r' if residual else _LETTERS[flow]}{value}"
            own.append(f"{name(graph.name)}:{candidate}" if taken[candidate] else candidate)
        taken.update({text for text in own if ":" not in text})
        names.append(own)
    return names


def _ordinal(number: int) -> str:
    return _ORDINALS[number - 1] if number <= len(_ORDINALS) else f"{number}th"


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
