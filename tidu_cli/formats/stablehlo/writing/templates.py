"""How the nodes of a case are written: as one operation, or as the call of a function of the module's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidu_cli.formats.stablehlo.writing.lowering import lowered, operations
from tidu_cli.formats.stablehlo.writing.values import arrays, tensor_text
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import TensorType
from tidu_cli.rules.vocabulary import PrimitiveSet

_NAME = re.compile(r"%[\w$.\-]+")
"""Names of values in text of MLIR."""

_CONSTANT = "stablehlo.constant"


@dataclass(frozen=True, slots=True)
class Template:
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
            module = lowered(case, self.primitives)
            with module.context:
                self._made[number] = self._single(case, module) or self._call(case, module)
        return self._made[number]

    def functions(self) -> Iterator[str]:
        """The texts of all functions that are called."""
        for text, name in self._functions.items():
            yield text.replace("@", f"@{name}", 1)

    def _single(self, case: Case, module: Any) -> Template | None:
        """The template of a function of no more than one operation beside constants, which is copied as it is."""
        block = _functions_of(module)["main"].entry_block
        *body, last = [op.operation for op in block.operations]
        others = [op for op in body if op.name != _CONSTANT]
        text = _made_by(others[0]) if others else ""
        if len(others) > 1 or (others and any(symbols(others[0]))) or re.search(r'"[^"]*%', text):
            return None
        names: dict[str, int | str] = {v.get_name(): k for k, v in enumerate(block.arguments)}
        names |= {op.result.get_name(): self.constant(_made_by(op)) for op in body if op.name == _CONSTANT}
        made = [v.get_name() for op in others for v in op.results]
        results = [(names | {name: ~k for k, name in enumerate(made)})[v.get_name()] for v in last.operands]
        slots = [k for name in _NAME.findall(text) if isinstance(k := names.get(name), int)]
        return Template.of(case, _NAME.sub(lambda found: _placed(found[0], names), text), slots, len(made), results)

    def _call(self, case: Case, module: Any) -> Template:
        name = self._function(_functions_of(module), "main", case.op, {})
        given, made = ([tensor_text(leaf) for t in types if t for _, leaf in arrays(t)] for types in (case.operands, case.results))
        text = f"func.call @{name}({', '.join(['%s'] * len(given))}) : ({', '.join(given)}) -> ({', '.join(made)})"
        return Template.of(case, text, range(len(given)), len(made), [~k for k in range(len(made))])

    def _function(self, functions: Mapping[str, Any], name: str, wished: str, named: dict[str, str]) -> str:
        """Make a function of another module, and those that it calls, functions of this one, `named` as they are here."""
        from jaxlib.mlir import ir

        function = functions[name].operation
        for op in operations(function):
            for attribute, symbol in symbols(op):
                its = named.get(symbol) or self._function(functions, symbol, symbol, named)
                op.attributes[attribute] = ir.FlatSymbolRefAttr.get(its)
        for attribute in ("arg_attrs", "res_attrs"):
            if attribute in function.attributes:
                del function.attributes[attribute]
        function.attributes["sym_visibility"] = ir.StringAttr.get("private")
        function.attributes["sym_name"] = ir.StringAttr.get("f")
        text = function.get_asm(use_local_scope=True).replace("@f", "@", 1)
        if text not in self._functions:
            self._functions[text] = self._name(wished)
        named[name] = self._functions[text]
        return named[name]

    def _name(self, wished: str) -> str:
        base = re.sub(r"\W", "_", wished)
        name = base
        while name in self._taken:
            self._numbers[base] += 1
            name = f"{base}_{self._numbers[base]}"
        self._taken.add(name)
        return name


def symbols(op: Any) -> Iterator[tuple[str, str]]:
    """The attributes of an operation that name functions, and the names."""
    from jaxlib.mlir import ir

    for attribute in op.attributes:
        if isinstance(value := op.attributes[attribute], ir.FlatSymbolRefAttr):
            yield attribute, value.value


def _functions_of(module: Any) -> dict[str, Any]:
    return {op.name.value: op for op in module.body.operations}


def _made_by(op: Any) -> str:
    """The text of an operation without the names of its results."""
    text: str = op.get_asm(use_local_scope=True)
    return text.partition(" = ")[2]


def _placed(name: str, names: Mapping[str, int | str]) -> str:
    """What stands for a name in the text of a template: %s for operands. Other names are of constants, or of values of regions."""
    known = names.get(name)
    return "%s" if isinstance(known, int) else f"%{known or f'%in_{name[1:]}'}"
