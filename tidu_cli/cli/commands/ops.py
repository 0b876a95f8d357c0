"""tidu ops: list the primitives, built-in ones and those of packages and libraries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import emit_json, emit_text, example, known_primitives, ops_option
from tidu_cli.cli.style import heading
from tidu_cli.errors import PluginError, TiduError
from tidu_cli.frozen import Frozen
from tidu_cli.rules.attrs.fields import field_names
from tidu_cli.rules.contract import Primitive

if TYPE_CHECKING:
    from tidu_cli.custom.definitions import OpDefinition
    from tidu_cli.rules.vocabulary import PrimitiveSet


class _Listed(Frozen, slots=False):
    """An op, where it comes from, and its primitive; or what is wrong where there is none."""

    name: str
    primitive: Primitive | None
    origin: dict[str, str]
    definition: OpDefinition | None = None
    state: tuple[str, str] = ("", "")  # "broken" or "not imported", and why

    @property
    def origin_text(self) -> str:
        """Where it comes from, for people; empty for what is built in."""
        if "file" in self.origin:
            return f"from {self.origin['file']}"
        packages = self.origin.get("package", "")
        return f"from {packages} {self.origin['version']}".rstrip() if packages != "tidu" else ""


@click.command(
    cls=Command,
    epilog=example(
        "tidu ops", "tidu ops mul reduce_sum", "tidu ops --ops samples/activations.json gelu", "tidu ops dot_general --json"
    ),
)
@click.argument("names", nargs=-1, metavar="[OP]...")
@click.option(
    "--long", "in_full", is_flag=True, help="Also dtypes, attrs with their types, and what each rule may emit, as for named ops."
)
@click.option("--json", "as_json", is_flag=True, help="All of that as JSON, for programs.")
@ops_option
def command(names: tuple[str, ...], in_full: bool, as_json: bool) -> None:
    """List the primitives, or those named in full.

    Each line tells the number of inputs (n: any), J for a JVP rule and T for a transpose rule, what it computes, and its [attrs];
    of those that installed packages or libraries (--ops) bring, also where they come from. Of packages only those are imported that
    --plugins names. An op that two of these bring, or one of them and tidu, is an error.
    """
    primitives = known_primitives()
    clashes = _clashes(primitives)
    if clash := next((clashes[name] for name in names if name in clashes), None):
        raise PluginError(clash)
    chosen = [_listed(primitives[name], primitives) for name in names] or list(_every(primitives, clashes))
    if as_json:
        emit_json([_data(listed, primitives) for listed in chosen], indent=1)
    else:
        in_full = in_full or bool(names)
        width = max(len(listed.name) for listed in chosen)
        emit_text("\n".join(line for listed in chosen for line in _lines(listed, primitives, width, in_full)))
    if clashes and not names:
        first, *more = clashes.values()
        raise PluginError(first + (f" (and {len(more)} more)" if more else ""))


def _clashes(primitives: PrimitiveSet) -> dict[str, str]:
    from tidu_cli.custom.packages import clashes
    from tidu_cli.lax.builtin import BUILTIN

    # What a library defines goes before what packages bring, as in documents.
    return {op: text for op, text in clashes(BUILTIN.primitives, primitives.plugins) if primitives.definition_of(op) is None}


def _every(primitives: PrimitiveSet, clashes: dict[str, str]) -> Iterator[_Listed]:
    from tidu_cli.custom.packages import announced, not_named

    for primitive in primitives:
        yield _listed(primitive, primitives)
    for op, known in announced().items():
        packages, how, why = known.among(primitives.plugins), "broken", clashes.get(op, "")
        if not why and op in primitives.primitives:
            continue
        if not why and not packages:
            packages, how, why = known.packages, "not imported", not_named(known)
        if not why:
            try:
                yield _listed(primitives[op], primitives)
                continue
            except PluginError as error:
                why = str(error)
        for package in packages:
            yield _Listed(op, None, {"package": package.name, "version": package.version}, state=(how, why))


def _listed(primitive: Primitive, primitives: PrimitiveSet) -> _Listed:
    from tidu_cli import __version__
    from tidu_cli.custom.packages import announced

    definition = primitives.definition_of(primitive.name)
    if definition is not None:
        return _Listed(primitive.name, primitive, {"file": definition.origin}, definition)
    if primitive.name in primitives.primitives:
        return _Listed(primitive.name, primitive, {"package": "tidu", "version": __version__})
    (package,) = announced()[primitive.name].among(primitives.plugins)
    return _Listed(primitive.name, primitive, {"package": package.name, "version": package.version})


def _lines(listed: _Listed, primitives: PrimitiveSet, width: int, in_full: bool) -> Iterator[str]:
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
        details = _details(p, _data(listed, primitives), is_built_in=definition is None)
        yield from (f"{'':{width}}  {line}" for line in (*filter(None, [origin]), *details))


def _details(primitive: Primitive, data: dict[str, Any], *, is_built_in: bool) -> Iterator[str]:
    """What the JSON form has besides what an op's line says."""
    import json

    from tidu_cli.graph.types import dtype_class

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
    if is_built_in and primitive.without_derivative:
        yield primitive.without_derivative


def _data(listed: _Listed, primitives: PrimitiveSet) -> dict[str, Any]:
    primitive, definition = listed.primitive, listed.definition
    if primitive is None:
        how, why = listed.state
        return {"op": listed.name, "origin": listed.origin, how.replace(" ", "_"): why}
    if definition is None:
        from tidu_cli.checking.catalogue import entry

        return {**entry(primitive, primitives).to_data(), "origin": listed.origin}
    if listed.name != definition.name:
        return {"op": listed.name, "derivative_of": definition.name, "origin": listed.origin}
    known = definition.to_data()
    return {
        "op": listed.name,
        "arity": primitive.domain.arity,
        "origin": listed.origin,
        "inputs": known["inputs"],
        "outputs": known["outputs"],
        "attrs": known.get("attrs", {}),
        "graphs": {kind: sorted({node.op for node in graph.nodes}) for kind, graph in definition.graphs.items()},
        "emits": _emitted(primitive, primitives, definition),
    }


def _emitted(primitive: Primitive, primitives: PrimitiveSet, definition: OpDefinition) -> dict[str, list[str]]:
    """What the rules of an own primitive emit, by letter: at the least types that its patterns allow, if they allow these."""
    from collections import defaultdict

    from tidu_cli.checking.closure import emissions
    from tidu_cli.custom.patterns import ANY_DTYPE, instance
    from tidu_cli.rules.contract import Example
    from tidu_cli.rules.families import changed

    types = tuple(str(instance(pattern, defaultdict(lambda: 2, {ANY_DTYPE: "f64"}))) for pattern in definition.inputs.values())
    try:
        found = emissions(changed(primitive, examples=(Example(types),)), primitives)
    except TiduError:  # its sizes belong together otherwise, or an attr must be given
        return {}
    return {"J": list(found.jvp)} | ({"T": list(found.transpose)} if found.transpose else {})
