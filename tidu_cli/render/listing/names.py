"""What values are called in a listing: inputs by their keys, results of nodes a, b, c, ..., z, aa, ab, ... through all graphs."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import accumulate

from tidu_cli.errors import printable
from tidu_cli.graph.graph import Externals, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import Literal, literal_to_numbers
from tidu_cli.graph.types import COMPLEXES, TIMES, TensorType

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def letters(number: int) -> str:
    """The name of this number: a to z, then aa, ab, ...

    >>> [letters(n) for n in (0, 25, 26, 702)]
    ['a', 'z', 'aa', 'aaa']
    """
    found = ""
    while number >= 0:
        found = _LETTERS[number % 26] + found
        number = number // 26 - 1
    return found


def _number(text: str) -> int:
    found = 0
    for letter in text:
        found = found * 26 + _LETTERS.index(letter) + 1
    return found - 1


def key_text(key: Key | str) -> str:
    """A key on one line, in quotes if it has spaces, brackets or the like."""
    text = str(key)
    return text if text and not set(text) & set(" \t\n\r'\"()[]{},:=") and text.isprintable() else f"'{printable(text)}'"


def scalar_text(literal: Literal) -> str | None:
    """A constant without axes as a number with its dtype, `2.0`, `3:i64`; None for others, and for times."""
    if literal.type.shape or literal.type.dtype in TIMES:
        return None
    numbers = literal_to_numbers(literal)
    if literal.type.dtype in COMPLEXES:
        re, im = map(_float, numbers)
        text = str(complex(re, im)).strip("()")
    else:
        text = str(numbers[0])
    return text if literal.type.dtype in ("f64", "bool") else f"{text}:{literal.type.dtype}"


def elements_text(literal: Literal, most: int) -> str:
    """A constant by its first elements: `[1.0, 2.0, …]`."""
    n = min(literal.type.size, most)
    size = len(literal.data) // max(literal.type.size, 1)
    parts = [scalar_text(Literal(TensorType(literal.type.dtype), literal.data[k * size : (k + 1) * size])) or "…" for k in range(n)]
    parts = [part.partition(":")[0] for part in parts] + (["…"] if literal.type.size > n else [])
    return f"[{', '.join(parts)}]"


def attr_text(value: object) -> str:
    """An attr on one line: (1,2), true, {a: 1}."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{','.join(map(attr_text, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k}: {attr_text(v)}' for k, v in value.items())}}}"
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return str(value)


class Names:
    """The names of the values of a document's graphs. Constants without axes are called by their numbers and have no line."""

    def __init__(self, graphs: Iterable[Graph], taken: Iterable[str]) -> None:
        self.graphs = list(graphs)
        reserved = sorted({_number(t) for t in taken if t and len(t) < 7 and set(t) <= set(_LETTERS)})
        self._gaps = [number - k for k, number in enumerate(reserved)]
        self.inline = [self._constants(graph) for graph in self.graphs]
        self._hidden = [self._before(graph, inline) for graph, inline in zip(self.graphs, self.inline, strict=True)]
        sizes = [graph.n_values - len(graph.inputs) - hidden[-1] for graph, hidden in zip(self.graphs, self._hidden, strict=True)]
        self._first = list(accumulate(sizes, initial=0))

    @staticmethod
    def _constants(graph: Graph) -> dict[int, str]:
        """The codes of constants without axes, and how these are written."""
        found = {}
        for code in set(graph.code):
            case = graph.cases[code]
            literal = getattr(case.attrs, "value", None) if case.op == "constant" else None
            text = scalar_text(literal) if isinstance(literal, Literal) else None
            if text is not None:
                found[code] = text
        return found

    @staticmethod
    def _before(graph: Graph, inline: dict[int, str]) -> array[int]:
        """Of each node how many constants without a line there are before it; and of the end."""
        return array("i", accumulate((code in inline for code in graph.code), initial=0)) if inline else array("i", [0])

    def of(self, graph: int, value: int) -> str:
        """The name of a value of a graph, by their numbers."""
        if graph == Externals.DETACHED:
            return f"detached{value}"
        source = self.graphs[graph]
        if value < len(source.inputs):
            return key_text(source.inputs[value].key)
        number = self._first[graph] + value - len(source.inputs)
        if self.inline[graph]:
            node, _ = source.producer(value)
            text = self.inline[graph].get(source.code[node])
            if text is not None:
                return text
            number -= self._hidden[graph][node]
        return letters(number + bisect_right(self._gaps, number))


def names_of(*graphs: Graph) -> Names:
    """The names of the values of these graphs: none of them is a key."""
    keys = [str(key) for graph in graphs for key in (*(i.key for i in graph.inputs), *(o.key for o in graph.outputs))]
    return Names(graphs, keys)


def _float(number: object) -> float:
    return float(str(number))
