"""tidu ops: list the primitives, built-in ones and those of packages and libraries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.messages import heading
from tidu_cli.cli.options import emit_json, emit_text, example, known_primitives, ops_option, option
from tidu_cli.errors import PluginError
from tidu_cli.graph.types import dtype_class
from tidu_cli.rules.contract import Primitive
from tidu_cli.rules.fields import field_names

if TYPE_CHECKING:
    from tidu_cli.checking.catalogue import Listed
    from tidu_cli.rules.vocabulary import PrimitiveSet


@click.command(
    cls=Command,
    epilog=example(
        "tidu ops",
        "tidu ops mul reduce_sum",
        "tidu ops bessel_j --backends",
        "tidu ops --ops samples/activations.json gelu",
        "tidu ops dot_general --json",
    ),
)
@click.argument("names", nargs=-1, metavar="[OP]...")
@click.option(
    "--long", "in_full", is_flag=True, help="Also dtypes, attrs with their types, and what each rule may emit, as for named ops."
)
@option("backends")
@click.option("--json", "as_json", is_flag=True, help="All of that as JSON, for programs.")
@ops_option
def command(names: tuple[str, ...], in_full: bool, backends: bool, as_json: bool) -> None:
    """List the primitives, or those named in full.

    Each line tells the number of inputs (n: any), J for a JVP rule and T for a transpose rule, what it computes, and its [attrs];
    of those that installed packages or libraries (--ops) bring, also where they come from. Of packages only those are imported that
    --plugins names. An op that two of these bring, or one of them and tidu, is an error.
    """
    from tidu_cli.api.checks import op_data
    from tidu_cli.checking.catalogue import known_ops

    primitives = known_primitives()
    chosen, wrong = known_ops(names, primitives)
    if as_json:
        emit_json([op_data(op, primitives, backends) for op in chosen], indent=1)
    else:
        in_full = in_full or backends or bool(names)
        width = max(len(op.name) for op in chosen)
        emit_text("\n".join(line for op in chosen for line in _lines(op, primitives, width, in_full, backends)))
    if wrong:
        raise PluginError(wrong)


def _lines(listed: Listed, primitives: PrimitiveSet, width: int, in_full: bool, backends: bool) -> Iterator[str]:
    from tidu_cli.api.checks import op_data

    p, origin, definition = listed.primitive, listed.origin_text, listed.definition
    if p is None:
        yield f"{heading(f'{listed.name:{width}}')}  {': '.join(listed.state)}"
        return
    arity = "n" if p.domain.arity is None else p.domain.arity
    # An own op is transposed where its forward graph is linear, which depends on the types: only `transpose` says that it is.
    said = definition is None or p.name != definition.name or "transpose" in definition.graphs
    rules = ("J" if p.rules.jvp else "-") + ("T" if p.rules.transpose and said else "-")
    names = list(field_names(p.domain.attrs)) if definition is None else list(definition.attrs)
    attrs = f"  [{', '.join(names)}]" if names and not in_full else ""
    where = f"  ({origin})" if origin and not in_full else ""
    yield f"{heading(f'{p.name:{width}}')}  {arity}  {rules}  {p.catalogue.formula}: {p.catalogue.summary}{attrs}{where}"
    if in_full:
        details = _details(p, op_data(listed, primitives, backends), is_built_in=definition is None)
        yield from (f"{'':{width}}  {line}" for line in (*filter(None, [origin]), *details))


def _details(primitive: Primitive, data: dict[str, Any], *, is_built_in: bool) -> Iterator[str]:
    """What the JSON form has besides what an op's line says."""
    if is_built_in:
        yield f"of {dtype_class(primitive.domain.dtypes)}"
    for what in ("input", "output"):
        yield from (f"{what} {port['key']}: {port['type']}" for port in data.get(f"{what}s", ()))
    for name, told in data.get("attrs", {}).items():
        default = "" if told is None else f": {json.dumps(told, ensure_ascii=False)} by default"
        yield f"attr {name}: {told}" if is_built_in else f"attr {name}{default}"
    for kind, ops in data.get("graphs", {}).items():
        yield f"{kind}: {', '.join(ops) or 'nothing'}"
    emits = data.get("emits", {})
    for rule, emitted in emits.items():
        if rule in data.get("rules", emits):
            yield f"{rule[0].upper()} → {', '.join(emitted) or 'nothing'}"
    if is_built_in and (names := data.get("names")):
        yield f"called {', '.join(names)}"
    if is_built_in and (defined_by := data.get("defined_by")):
        yield f"defined by {', '.join(defined_by)}"
    if is_built_in and primitive.evaluation.opaque:
        yield f"without a definition: it {primitive.evaluation.opaque}"
    if is_built_in and primitive.without_derivative:
        yield primitive.without_derivative
    yield from (f"in {name}: {way}" for name, way in data.get("backends", {}).items())
