"""tidu build: a graph from a formula, or from a function of NumPy or JAX."""

from __future__ import annotations

from typing import Any

import click

from tidu_cli.cli.building.declarations import inputs_option
from tidu_cli.cli.building.documents import built
from tidu_cli.cli.building.kinds import FUNCTION, Kind
from tidu_cli.cli.main import Command
from tidu_cli.cli.options import DOCUMENTS, emit, example, result_options


@click.command(cls=Command, epilog=example("tidu build 'sum(log1p(exp(-t * (X @ w))))' -i X:f64[9,3] -i t:f64[9] -i w:f64[3]"))
@click.argument("source", metavar="FORMULA|FILE.py:FUNCTION")
@inputs_option(
    "An input and its type: x:f64[3], say, or p:{a: f64[], b: f64[3]}, which has the fields p.a and p.b; or a constant, as JSON or "
    "@FILE: n=5, mode='\"linear\"', config=@config.json, table=@table.npy; repeats, in the order of the graph's inputs."
)
@click.option(
    "--inputs",
    "files",
    multiple=True,
    metavar="FILE",
    help="Values by key, JSON, npz or msgpack, that say the types of inputs without an -i; repeats.",
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
    files: tuple[str, ...],
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
    if rules and not by_jax:
        raise click.UsageError("--rules goes with --jax")
    kind: Kind = "function" if FUNCTION.fullmatch(source) else "formula"
    if by_jax and kind != "function":
        raise click.UsageError(f"--jax takes FILE.py:FUNCTION, not '{source}'")
    how: dict[str, Any] = {"rules": rules} if by_jax else {}
    name = name or (None if kind == "function" else "f")
    document = built(source, kind, (), files, jax=by_jax, name=name, outputs=outputs, **how)
    emit(document, out, format_, "json")
