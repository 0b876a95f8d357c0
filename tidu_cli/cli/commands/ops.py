"""tidu ops: list the primitives, built-in ones and those of packages and libraries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import emit_json, emit_text, example, known_primitives, ops_option
from tidu_cli.cli.style import heading
from tidu_cli.errors import PluginError, TiduError
from tidu_cli.rules.attrs.fields import field_names
from tidu_cli.rules.contract import Primitive

if TYPE_CHECKING:
    from tidu_cli.custom.definitions import OpDefinition
    from tidu_cli.custom.packages import Package
    from tidu_cli.custom.patterns import Pattern
    from tidu_cli.graph.types import Type
    from tidu_cli.rules.contract import PrimitiveSet


@dataclass(frozen=True)
class _Listed:
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
    chosen = [_named(name, primitives, clashes) for name in names] or list(_every(primitives, clashes))
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


def _named(name: str, primitives: PrimitiveSet, clashes: dict[str, str]) -> _Listed:
    """An op that was asked for. Raises UnknownNameError for one that is not there, and PluginError for a clash or a broken one."""
    if name in clashes:
        raise PluginError(clashes[name])
    return _listed(primitives[name], primitives)


def _every(primitives: PrimitiveSet, clashes: dict[str, str]) -> Iterator[_Listed]:
    from tidu_cli.custom.packages import announced, not_named

    for primitive in primitives:
        yield _listed(primitive, primitives)
    for op, known in announced().items():
        if op in clashes:
            yield from _without(op, known.among(primitives.plugins), "broken", clashes[op])
        elif op in primitives.primitives:
            continue
        elif not known.among(primitives.plugins):
            yield from _without(op, known.packages, "not imported", not_named(known))
        else:
            try:
                yield _listed(primitives[op], primitives)
            except PluginError as error:
                yield from _without(op, known.among(primitives.plugins), "broken", str(error))


def _without(op: str, packages: tuple[Package, ...], how: str, why: str) -> Iterator[_Listed]:
    """An op of these packages, of which there is no primitive: its state is how, and why."""
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
    p, origin = listed.primitive, listed.origin_text
    if p is None:
        yield f"{heading(f'{listed.name:{width}}')}  {': '.join(listed.state)}"
        return
    arity = "n" if p.arity is None else p.arity
    # A custom one is transposed where its forward graph is linear, which depends on the types: only `transpose` says that it is.
    said = listed.definition is None or p.name != listed.definition.name or "transpose" in listed.definition.graphs
    rules = ("J" if p.jvp else "-") + ("T" if p.transpose and said else "-")
    names = list(field_names(p.attrs)) if listed.definition is None else list(listed.definition.attrs)
    attrs = f"  [{', '.join(names)}]" if names and not in_full else ""
    where = f"  ({origin})" if origin and not in_full else ""
    yield f"{heading(f'{p.name:{width}}')}  {arity}  {rules}  {p.formula}: {p.summary}{attrs}{where}"
    if in_full:
        details = _details(p, primitives) if listed.definition is None else _defined(p, primitives, listed.definition)
        yield from (f"{'':{width}}  {line}" for line in ([origin] if origin else []))
        yield from (f"{'':{width}}  {line}" for line in details)


def _details(primitive: Primitive, primitives: PrimitiveSet) -> Iterator[str]:
    from tidu_cli.checking.catalogue import entry
    from tidu_cli.rules.families import dtype_class

    found = entry(primitive, primitives)
    yield f"of {dtype_class(primitive.dtypes)}"
    for name, type_ in found.attrs.items():
        yield f"attr {name}: {type_}"
    for rule, letter, emitted in (("jvp", "J", found.emits.jvp), ("transpose", "T", found.emits.transpose)):
        if rule in found.rules:
            yield f"{letter} → {', '.join(emitted) or 'nothing'}"
    if primitive.without_derivative:
        yield primitive.without_derivative


def _defined(primitive: Primitive, primitives: PrimitiveSet, definition: OpDefinition) -> Iterator[str]:
    """A custom operation: its inputs and outputs, its attrs, the ops of each of its graphs, and what its rules emit."""
    if primitive.name != definition.name:
        return  # its derivative, of which the line has said all
    import json

    from tidu_cli.custom.attrs import REQUIRED

    for what, ports in (("input", definition.inputs), ("output", definition.outputs)):
        yield from (f"{what} {port.name}: {port.pattern}" for port in ports)
    for name, value in definition.attrs.items():
        yield f"attr {name}" + ("" if value is REQUIRED else f": {json.dumps(value, ensure_ascii=False)} by default")
    for kind, ops in _ops_of(definition).items():
        yield f"{kind}: {', '.join(ops) or 'nothing'}"
    for letter, emitted in _emitted(primitive, primitives, definition).items():
        yield f"{letter} → {', '.join(emitted) or 'nothing'}"


def _ops_of(definition: OpDefinition) -> dict[str, list[str]]:
    """The ops that each of its graphs uses."""
    return {kind: sorted({node.op for node in graph.nodes}) for kind, graph in definition.graphs.items()}


def _smallest(pattern: Pattern) -> Type:
    from collections import defaultdict

    from tidu_cli.custom.patterns import ANY_DTYPE, instance

    return instance(pattern, defaultdict(lambda: 2, {ANY_DTYPE: "f64"}))


def _emitted(primitive: Primitive, primitives: PrimitiveSet, definition: OpDefinition) -> dict[str, list[str]]:
    """What the rules of a custom operation emit, by letter: at the least types that its patterns allow, if they allow these."""
    from tidu_cli.checking.closure import emissions
    from tidu_cli.rules.contract import Example

    types = tuple(str(_smallest(port.pattern)) for port in definition.inputs)
    try:
        found = emissions(replace(primitive, examples=(Example(types),)), primitives)
    except TiduError:  # its sizes belong together otherwise, or an attr must be given
        return {}
    return {"J": list(found.jvp)} | ({"T": list(found.transpose)} if found.transpose else {})


def _data(listed: _Listed, primitives: PrimitiveSet) -> dict[str, Any]:
    if listed.primitive is None:
        how, why = listed.state
        return {"op": listed.name, "origin": listed.origin, how.replace(" ", "_"): why}
    definition = listed.definition
    if definition is not None:
        if listed.name != definition.name:
            return {"op": listed.name, "derivative_of": definition.name, "origin": listed.origin}
        known = definition.to_data()
        return {
            "op": listed.name,
            "arity": listed.primitive.arity,
            "origin": listed.origin,
            "inputs": known["inputs"],
            "outputs": known["outputs"],
            "attrs": known.get("attrs", {}),
            "graphs": _ops_of(definition),
            "emits": _emitted(listed.primitive, primitives, definition),
        }
    from tidu_cli.checking.catalogue import entry

    return {**entry(listed.primitive, primitives).to_data(), "origin": listed.origin}
