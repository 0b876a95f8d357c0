"""How the nodes of a case are written: as one operation, or as the call of a function of the module's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from tidu_cli.adapters.stablehlo.writing.lowering import CALLED, Body, Lowered, lowered
from tidu_cli.adapters.stablehlo.writing.values import arrays, tensor_text
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import TensorType
from tidu_cli.rules.vocabulary import PrimitiveSet

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
        self._functions: dict[str, str] = {}
        """The names of functions by their texts, in which they have none."""
        self._made: dict[int, Template] = {}
        self._taken = {"main"}
        self._numbers: Counter[str] = Counter()

    def of(self, number: int, case: Case) -> Template:
        """The template of a case, by its number. Raises UnwrittenError."""
        if number not in self._made:
            found = lowered(case, self.primitives)
            self._made[number] = self._call(case, found) if found.body is None else self._copy(case, found.body)
        return self._made[number]

    def functions(self) -> Iterator[str]:
        """The texts of all functions that are called."""
        for text, name in self._functions.items():
            yield text.replace("@", f"@{name}", 1)

    def _copy(self, case: Case, body: Body) -> Template:
        """The template of one operation, which is copied as it is."""
        names: dict[str, int | str] = {name: k for k, name in enumerate(body.arguments)}
        names |= {name: self.constant(text) for name, text in body.constants.items()}
        slots: list[int] = []

        def put(found: re.Match[str]) -> str:
            known = names.get(found[0])
            if not isinstance(known, int):
                return f"%{known or f'%in_{found[0][1:]}'}"  # a constant, or a value of a region, which has a name of its own
            slots.append(known)
            return "%s"

        text = _NAME.sub(put, body.text)
        own = names | {name: ~k for k, name in enumerate(body.made)}
        return Template.of(case, text, slots, len(body.made), [own[name] for name in body.returned])

    def _call(self, case: Case, found: Lowered) -> Template:
        """The template of a call."""
        names: list[str] = []
        for wished, text in found.functions:
            for k, name in enumerate(names):
                text = text.replace(f"@{CALLED.format(k)}", f"@{name}")
            if text not in self._functions:
                self._functions[text] = self._name(case.op if wished == "main" else wished)
            names.append(self._functions[text])
        given, made = ([tensor_text(leaf) for t in types if t for _, leaf in arrays(t)] for types in (case.operands, case.results))
        text = f"func.call @{names[-1]}({', '.join(['%s'] * len(given))}) : ({', '.join(given)}) -> ({', '.join(made)})"
        return Template.of(case, text, range(len(given)), len(made), [~k for k in range(len(made))])

    def _name(self, wished: str) -> str:
        base = re.sub(r"\W", "_", wished)
        name = base
        while name in self._taken:
            self._numbers[base] += 1
            name = f"{base}_{self._numbers[base]}"
        self._taken.add(name)
        return name
