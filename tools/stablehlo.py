"""The tables of docs/stablehlo.md: which operations are read, and what primitives are written as.

They stand between comments, `<!-- primitives: make generated -->` and `<!-- end -->` say; the rest of the page is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tidu_cli.adapters.stablehlo.lowering import Lowered, lowered
from tidu_cli.adapters.stablehlo.reading.site import RefusedError, reader_of
from tidu_cli.adapters.stablehlo.text import UnwrittenError
from tidu_cli.checking.numeric.trials import example_cases
from tidu_cli.errors import counted
from tidu_cli.graph.graph import Case
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.contract import Primitive

PAGE = Path(__file__).parents[1] / "docs" / "stablehlo.md"

PART = re.compile(r"(<!-- (\w+): make generated -->\n).*?(<!-- end -->)", re.S)

_OPERATION = re.compile(r"\"?\b((?:stablehlo|chlo)\.[a-z_0-9]+)\b\"?(?: (@\w+))?")
_NO_WORK = {"stablehlo.constant", "stablehlo.return"}


def renewed(page: str) -> str:
    """The page with the tables of today."""
    tables = {"operations": read_table, "primitives": written_table}
    return PART.sub(lambda match: "\n".join((match[1], *tables[match[2]](), "", match[3])), page)


def known_operations() -> list[str]:
    """The operations of StableHLO and of chlo that the installed jaxlib knows, by their names."""
    from jaxlib.mlir.dialects import _chlo_ops_gen, _stablehlo_ops_gen

    classes = [c for module in (_stablehlo_ops_gen, _chlo_ops_gen) for c in vars(module).values() if isinstance(c, type)]
    names = {str(c.OPERATION_NAME) for c in classes if hasattr(c, "OPERATION_NAME")}
    return sorted(names - {"stablehlo.return"})


def read_table() -> Iterator[str]:
    """Which operations are read, and why others are not."""
    read, refused = [], []
    for name in known_operations():
        try:
            reader_of(name)
        except RefusedError as error:
            refused.append(f"| `{name}` | {error} |")
        else:
            read.append(f"`{name}`")
    for dialect in ("stablehlo", "chlo"):
        names = [name for name in read if name.startswith(f"`{dialect}.")]
        yield from (f"{counted(len(names), 'operation')} of {dialect} are read: {', '.join(names)}.", "")
    yield from ("| not read | it |", "|---|---|", *refused)


def written_table() -> Iterator[str]:
    """What the primitives are written as: the first of their examples, of f64 if it takes that."""
    written = {primitive.name: _written(primitive) for primitive in BUILTIN}
    yield from ("| primitive | written as |", "|---|---|")
    yield from (f"| {_linked(name)} | {text} |" for name, text in written.items() if text)
    refused = [_linked(name) for name, text in written.items() if not text]
    if refused:
        yield from ("", f"Not written, as JAX has no function that computes them: {', '.join(refused)}.")


def _linked(name: str) -> str:
    return f"[`{name}`](primitives.md#{name})"


def _written(primitive: Primitive) -> str:
    """What a primitive is written as, nothing if it is not written."""
    examples = [case for _, case in example_cases(BUILTIN, primitive)]
    for case in sorted(examples, key=lambda case: "f64" not in _dtypes(case)):
        try:
            return _words(lowered(case, BUILTIN))
        except UnwrittenError:
            continue
    return ""


def _words(lowering: Lowered) -> str:
    if lowering.body is not None:
        (name, _), *_ = _operations(lowering.body.text) or [("", "")]
        return f"`{name}`" if name else "`stablehlo.constant`" if lowering.body.constants else "its operand"
    operations = [op for _, text in lowering.functions for op in _operations(text)]
    calls = sorted({called for name, called in operations if name == "stablehlo.custom_call"})
    library = f", calls {', '.join(f'`{name[1:]}`' for name in calls)}" if calls else ""
    return f"a function of {counted(len(operations), 'operation')}{library}"


def _operations(text: str) -> list[tuple[str, str]]:
    return [(name, called) for name, called in _OPERATION.findall(text) if name not in _NO_WORK]


def _dtypes(case: Case) -> set[str]:
    return {getattr(type_, "dtype", "") for type_ in (*case.operands, *case.results)}


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
