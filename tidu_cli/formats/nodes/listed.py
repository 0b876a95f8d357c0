"""Lists of nodes as columns, in plain data of JSON and msgpack.

A node of a list is several objects of Python, of a kilobyte together; in these columns it takes some twenty bytes. Whoever wants to
see the nodes themselves iterates.
"""

from __future__ import annotations

import marshal
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from operator import itemgetter
from typing import Any

from tidu_cli.formats.nodes.columns import Pairs
from tidu_cli.graph.graph import Column, column
from tidu_cli.watching import Watched


class Listed(Iterable[dict[str, Any]]):
    """A list of nodes.

    `table` has what is distinct in them but for inputs and meta, in order of first use, with the number of inputs in place of the
    inputs. `code` says for each node which it is, and `meta` has the meta of those nodes that have one, by index. `args` has the
    inputs of all nodes: a local id, or -1-k for `external[k]`, one for each time that a node reads what is no local id.

    The fields are those of nodes. Of what is in them, attrs, types and meta have not been looked at, nor whether there are such
    values.
    """

    def __init__(self) -> None:
        self.table: list[dict[str, Any]] = []
        self.code: Column[int] = column()
        self.args: Column[int] = column()
        self.external: Pairs | list[object] = Pairs()
        self.meta: dict[int, Any] = {}
        self._number: dict[tuple[object, ...], int] = {}
        self._n_keys: list[int] = []

    @classmethod
    def of(cls, nodes: list[Any], watched: Watched) -> Listed | None:
        """A list as columns; None if it is not as it must be."""
        listed = cls()
        return listed if listed.take(nodes, watched) is not None else None

    def __len__(self) -> int:
        return len(self.code)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        args, external = iter(self.args), iter(self.external)
        for i, r in enumerate(self.code):
            row = self.table[r]
            inputs = [a if (a := next(args)) >= 0 else next(external) for _ in range(row["inputs"])]
            meta = {"meta": self.meta[i]} if i in self.meta else {}
            yield {**row, "inputs": inputs, **meta}

    def take(self, nodes: list[Any], watched: Watched = iter) -> int | None:
        """Append nodes. The number of keys of objects, at any depth, in what was taken; None if it is not as it must be.

        After None this is of no use.
        """
        try:
            return self._taken(nodes, watched)
        except (KeyError, TypeError, ValueError, OverflowError):  # something is of another kind, or there is another field
            return None

    def _taken(self, nodes: list[Any], watched: Watched) -> int:
        inputs: list[list[Any]] = list(map(itemgetter("inputs"), nodes))
        masks: list[list[Any]] = []
        number, code, n_keys = self._number, array("i"), 0
        for node, references in zip(watched(nodes), inputs, strict=True):
            key: tuple[object, ...]
            n_fields = len(node)
            if n_fields > 2 and "meta" in node:
                meta = self.meta[len(self.code) + len(code)] = node["meta"]
                n_keys += 1 + _n_keys([meta])
                n_fields -= 1
            if n_fields == 2:
                key = node["op"], len(references)
            else:
                mask = others = None
                if "role" in node:
                    role = node["role"]
                    mask = role["linearized"]["active_mask"]
                    _require(len(role) == len(role["linearized"]) == 1)
                    masks.append(mask)
                    mask = tuple(mask)
                    n_fields -= 1
                if n_fields > 2:
                    _require(n_fields == 2 + ("attrs" in node) + ("types" in node))
                    # A tuple is what no JSON becomes: equal keys have the same fields.
                    others = marshal.dumps((node.get("attrs", ()), node.get("types", ())), 2)
                key = node["op"], len(references), mask, others
            row = number.get(key)
            if row is None:
                row = number[key] = self._new_row(node, len(references))
            code.append(row)
        # Masks that are equal to such may be of numbers.
        _require({list}.issuperset(map(type, chain(inputs, masks))) and {bool}.issuperset(map(type, chain.from_iterable(masks))))
        self._take_references([*chain.from_iterable(inputs)])
        self.code.extend(code)
        return n_keys + sum(map(self._n_keys.__getitem__, code))

    def _new_row(self, node: dict[str, Any], arity: int) -> int:
        _require(type(node["op"]) is str)
        row = {name: value for name, value in node.items() if name != "meta"} | {"inputs": arity}
        self._n_keys.append(_n_keys([row]))
        self.table.append(row)
        return len(self.table) - 1

    def _take_references(self, references: list[Any]) -> None:
        local: Sequence[int] = [r for r in references if type(r) is int]
        _require(not local or min(local) >= 0)
        if len(local) < len(references):
            argument = count(-1 - len(self.external), -1)
            others = [r for r in references if type(r) is not int]
            if isinstance(self.external, list) or not self.external.take(others):
                self.external = [*self.external, *others]
            local = [r if type(r) is int else next(argument) for r in references]
        self.args.extend(array("i", local))


def _require(condition: object) -> None:
    if not condition:
        raise ValueError


def _n_keys(values: Iterable[Any]) -> int:
    """The number of keys of all objects among values and in them."""
    n_keys, level = 0, list(values)
    while level:
        n_keys += sum(len(value) for value in level if isinstance(value, dict))
        parts = (value.values() if isinstance(value, dict) else value for value in level if isinstance(value, dict | list))
        level = [*chain.from_iterable(parts)]
    return n_keys
