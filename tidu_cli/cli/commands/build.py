"""tidu build: a graph from a formula, or from a function of NumPy or JAX."""

from __future__ import annotations

import os
from typing import Any

import click

from tidu_cli.cli.building import FILES, Kind, declared, inputs_option, is_function, kind_of, types_option
from tidu_cli.cli.main import Command
from tidu_cli.cli.messages import note
from tidu_cli.cli.options import emit, example, option
from tidu_cli.cli.out_option import result_options
from tidu_cli.cli.sources import built
from tidu_cli.formats.files import DOCUMENTS
from tidu_cli.installed import source_named


@click.command(cls=Command, epilog=example("tidu build 'sum(log1p(exp(-t * (X @ w))))' -i X:f64[9,3] -i t:f64[9] -i w:f64[3]"))
@click.argument("source", metavar="FORMULA|FILE.py:FUNCTION")
@inputs_option(
    "An input and its type: x:f64[3], say, or p:{a: f64[], b: f64[3]}, which has the fields p.a and p.b; or a constant, as JSON or "
    "@FILE: n=5, mode='\"linear\"', config=@config.json, table=@table.npy; repeats, in the order of the graph's inputs. "
    "[default of formulas: numbers, f64[]]"
)
@types_option
@click.option(
    "--inputs",
    "files",
    multiple=True,
    metavar="FILE",
    help="Values by key, JSON, npz or msgpack, that say the types of inputs without an -i; repeats.",
)
@click.option(
    "--output",
    multiple=True,
    metavar="NAME",
    help="An output to keep; repeats. The name of the output, where the source gives none. [default: all; y]",
)
@option("name")
@click.option("--jax", "by_jax", is_flag=True, help="The function is one of JAX.")
@click.option(
    "--rules/--no-rules",
    default=None,
    help="With --jax: keep the derivatives that functions of jax.custom_jvp and custom_vjp define, or derive what they compute. "
    "[default: rules]",
)
@click.option("--source", "sources", is_flag=True, help="Note in each node which lines of FILE.py made it, for tidu view and dot.")
@result_options(*DOCUMENTS, default="json")
def command(
    source: str,
    files: tuple[str, ...],
    output: tuple[str, ...],
    name: str | None,
    by_jax: bool,
    rules: bool | None,
    sources: bool,
    out: str | None,
    format_: str | None,
) -> None:
    """Make a graph of a formula, or of a function of NumPy or JAX.

    A formula has NumPy's operators, indexing and functions; `y = ...; z = ...` names several outputs. Nothing of it is executed.

    FILE.py:FUNCTION is run, with arrays that record what is done to them. Inputs that are nested go by keys such as params.w or
    layers.0.b; parameters that have defaults may be left out. With --jax JAX traces the function, and its jaxpr becomes the graph;
    where an input has 64 bits, JAX has them, too.
    """
    if rules is not None and not by_jax:
        raise click.UsageError(f"--{'' if rules else 'no-'}rules goes with --jax")
    kind: Kind = "function" if is_function(source) else "formula"
    if sources and (by_jax or kind != "function"):
        raise click.UsageError("--source goes with FILE.py:FUNCTION of NumPy")
    if by_jax and kind != "function":
        raise click.UsageError(f"--jax takes FILE.py:FUNCTION, not '{source}'")
    if os.path.isfile(source) or (source.lower().endswith(FILES) and not declared()):
        kind_of(source, shared=True)  # which names a function of a file of Python
        raise click.UsageError(f"'{source}' names a file, and tidu build takes a formula or FILE.py:FUNCTION")
    how: dict[str, Any] = {"rules": rules is not False} if by_jax else {"source": sources} if sources else {}
    name = name or (None if kind == "function" else "f")
    document = built(source, kind, (), files, jax=by_jax, name=name, outputs=output, **how)
    if kind == "function" and not by_jax:
        for text in source_named(kind).notes(document):
            note(text)
    emit(document, out, format_, "json")
