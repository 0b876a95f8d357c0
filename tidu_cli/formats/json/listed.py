"""Listed nodes in plain data as columns, as they are read from large documents in JSON.

A node of a list is several objects of Python, of a kilobyte together; in these columns it takes some twenty bytes. Whoever wants to
see the nodes themselves iterates.
"""

from __future__ import annotations

import marshal
from array import array
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, count
from operator import itemgetter
from typing import Any

from tidu_cli.formats.nodes.columns import Pairs
from tidu_cli.graph.graph import Column, column


class Listed(Collection[dict[str, Any]]):
    """A list of nodes that read no detached values.

    `table` has what is distinct in them but for inputs and meta, in order of first use, with the number of inputs in place of the
    inputs. `code` says for each node which it is, and `meta` has the meta of those nodes that have one, by index. `args` has the
    inputs of all nodes: a local id, or -1-k for `external[k]`, one for each time that a value of another graph is read.

    The fields are those of nodes. Of what is in them, attrs, types and meta have not been looked at, nor whether there are such
    values.
    """

    def __init__(self) -> None:
        self.table: list[dict[str, Any]] = []
        self.code: Column[int] = column()
        self.args: Column[int] = column()
        self.external = Pairs()
        self.meta: dict[int, Any] = {}
        self._number: dict[tuple[object, ...], int] = {}
        self._n_keys: list[int] = []

    def __len__(self) -> int:
        return len(self.code)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        args, external = iter(self.args), iter(self.external)
        for i, r in enumerate(self.code):
            row = self.table[r]
            inputs = [a if (a := next(args)) >= 0 else next(external) for _ in range(row["inputs"])]
            meta = {"meta": self.meta[i]} if i in self.meta else {}
            yield {**row, "inputs": inputs, **meta}

    def __contains__(self, node: object) -> bool:
        return any(node == other for other in self)

    def take(self, nodes: list[Any]) -> int | None:
        """Append nodes. The number of keys of objects, at any depth, in what was taken; None if it is not as it must be.

        Fields that no node has are not looked at: if there are any, there are more keys than these. After None, or after nodes of
        more keys, this is of no use.
        """
        try:
            return self._taken(nodes)
        except (KeyError, TypeError, ValueError, OverflowError):  # something is of another kind
            return None

    def _taken(self, nodes: list[Any]) -> int | None:
        inputs: list[list[Any]] = list(map(itemgetter("inputs"), nodes))
        masks: list[list[Any]] = []
        number, code, n_keys = self._number, array("i"), 0
        for node, references in zip(nodes, inputs, strict=True):
            key: tuple[object, ...]
            if len(node) > 2 and "meta" in node:
                meta = self.meta[len(self.code) + len(code)] = node.pop("meta")
                n_keys += 1 + _n_keys([meta])
            if len(node) == 2:
                key = node["op"], len(references)
            else:
                mask = None
                if "role" in node:
                    mask = node["role"]["linearized"]["active_mask"]
                    masks.append(mask)
                    mask = tuple(mask)
                # A tuple is what no JSON becomes: equal keys have the same fields.
                others = marshal.dumps((node.get("attrs", ()), node.get("types", ())), 2) if len(node) > 3 or mask is None else None
                key = node["op"], len(references), mask, others
            row = number.get(key)
            if row is None:
                row = number[key] = self._new_row(node, len(references))
            code.append(row)
        if not {list}.issuperset(map(type, inputs)) or not {list}.issuperset(map(type, masks)):
            return None
        # Masks that are equal to such may be of numbers.
        if not {bool}.issuperset(map(type, chain.from_iterable(masks))):
            return None
        if not self._take_references([*chain.from_iterable(inputs)]):
            return None
        self.code.extend(code)
        return n_keys + sum(map(self._n_keys.__getitem__, code))

    def _new_row(self, node: dict[str, Any], arity: int) -> int:
        row = {**node, "inputs": arity}
        if type(row["op"]) is not str:
            raise TypeError
        taken = {field: row[field] for field in ("op", "inputs", "attrs", "role", "types") if field in row}
        if "role" in taken:
            taken["role"] = {"linearized": {"active_mask": []}}
        self._n_keys.append(_n_keys([taken]))
        self.table.append(row)
        return len(self.table) - 1

    def _take_references(self, references: list[Any]) -> bool:
        own = [r for r in references if type(r) is int]
        if own and min(own) < 0:
            return False
        if len(own) < len(references):
            argument = count(-1 - len(self.external), -1)
            if not self.external.take([r for r in references if type(r) is not int]):
                return False
            own = [r if type(r) is int else next(argument) for r in references]
        self.args.extend(array("i", own))
        return True


def _n_keys(values: Iterable[Any]) -> int:
    """The number of keys of all objects among values and in them."""
    n_keys, level = 0, list(values)
    while level:
        n_keys += sum(len(value) for value in level if isinstance(value, dict))
        parts = (value.values() if isinstance(value, dict) else value for value in level if isinstance(value, dict | list))
        level = [*chain.from_iterable(parts)]
    return n_keys
