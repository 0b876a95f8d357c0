"""tidu build: a graph from a formula, or from a function of NumPy or JAX."""

from __future__ import annotations

import re

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.messages import note
from tidu_cli.cli.options import DOCUMENTS, Parsed, emit, example, result_options
from tidu_cli.errors import TypeTextError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.text.types import parse_value_type
from tidu_cli.graph.types import Type

_FUNCTION = re.compile(r".*\.py:[A-Za-z_]\w*", re.S)


def _declaration(text: str) -> tuple[str, Type]:
    # Keys may hold colons, and types of records do, after a bracket.
    bracket = min(at for at in (text.find("{"), text.find("("), len(text)) if at >= 0)
    key, colon, _ = text[:bracket].rpartition(":")
    if not colon or not key:
        raise TypeTextError(f"'{text}' is not KEY:TYPE, such as x:f64[3] or x:f64[]")
    return key, parse_value_type(text[len(key) + 1 :])


@click.command(cls=Command, epilog=example("tidu build 'sum(log1p(exp(-t * (X @ w))))' -i X:f64[9,3] -i t:f64[9] -i w:f64[3]"))
@click.argument("source", metavar="FORMULA|FILE.py:FUNCTION")
@click.option(
    "-i",
    "--input",
    "inputs",
    type=Parsed("declaration", _declaration),
    multiple=True,
    metavar="KEY:TYPE",
    help="An input and its type: x:f64[3], say, or p:{a: f64[], b: f64[3]}, which has the fields p.a and p.b; repeats, in the "
    "order of the graph's inputs.",
)
@click.option(
    "--output",
    "outputs",
    multiple=True,
    metavar="NAME",
    help="An output to keep; repeats. The name of the output, where the source gives none. [default: all; y]",
)
@click.option("--name", metavar="NAME", help="The graph's name. [default: the function's, or f]")
@click.option("--jax", "by_jax", is_flag=True, help="The function is one of JAX.")
@click.option(
    "--rules", is_flag=True, help="With --jax: functions of jax.custom_jvp and custom_vjp are operations with these derivatives."
)
@result_options(*DOCUMENTS, default="json")
def command(
    source: str,
    inputs: tuple[tuple[str, Type], ...],
    outputs: tuple[str, ...],
    name: str | None,
    by_jax: bool,
    rules: bool,
    out: str | None,
    format_: str | None,
) -> None:
    """Make a graph of a formula, or of a function of NumPy or JAX.

    A formula has NumPy's operators, indexing and functions; `y = ...; z = ...` names several outputs. Nothing of it is executed.

    FILE.py:FUNCTION is run, with arrays that record what is done to them. Inputs that are nested go by keys such as params.w or
    layers.0.b; parameters that have defaults may be left out. With --jax JAX traces the function, and its jaxpr becomes the graph;
    where an input has 64 bits, JAX has them, too.
    """
    types: dict[str, Type] = {}
    for key, type_ in inputs:
        if key in types:
            raise click.BadParameter(f"'{key}' is given twice", param_hint="'-i'")
        types[key] = type_
    if rules and not by_jax:
        raise click.UsageError("--rules goes with --jax")
    if by_jax:
        if not _FUNCTION.fullmatch(source):
            raise click.UsageError(f"--jax takes FILE.py:FUNCTION, not '{source}'")
        from tidu_cli.build.jax.function import build_jax_function

        document = build_jax_function(source, types, name=name, outputs=outputs, rules=rules)
    elif _FUNCTION.fullmatch(source):
        from tidu_cli.build.tracing import build_function

        document = build_function(source, types, name=name, outputs=outputs)
        _hint(document)
    else:
        from tidu_cli.build.formulas.formula import build_formula

        document = build_formula(source, types, name=name or "f", outputs=outputs)
    emit(document, out, format_, "json")


def _hint(document: Document) -> None:
    from tidu_cli.build.repetition import repetition

    found = repetition(document.head)
    if found:
        note(f"{found[1]:,} nodes repeat {found[0]:,} times; tidu_cli.scan keeps such a loop as one node, for all numbers of steps")
