"""tidu step: a training step, the gradient and what an optimizer makes of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tidu_cli.cli.building import kind_of
from tidu_cli.cli.main import Command
from tidu_cli.cli.options import (
    Whole,
    chosen_format,
    emit,
    emit_bytes,
    example,
    file_argument,
    load,
    option,
    require_printable,
    require_stdin_once,
)
from tidu_cli.cli.out_option import result_options
from tidu_cli.cli.sources import names_of
from tidu_cli.cli.value_options import given_values, inputs_option
from tidu_cli.formats.files import DOCUMENTS
from tidu_cli.graph.keys import parse_key
from tidu_cli.graph.types import parse_type
from tidu_cli.installed import is_foreign, source_named

if TYPE_CHECKING:
    from tidu_cli.graph.graph import Document


@click.command(
    cls=Command,
    epilog=example("tidu step samples/mlp.json --wrt W1 --wrt b1 --optimizer adam --lr 1e-3 | tidu info"),
)
@file_argument
@option("wrt", required=True)
@option("output")
@option("optimizer", default="sgd")
@option("lr")
@option("clip_norm")
@option("weight_decay")
@option("accumulate", type=Whole(1))
@option("strong_zeros")
@click.option("--init", is_flag=True, help="Write the values to begin with: weights of --inputs, and zeros beside them.")
@inputs_option
@result_options(*DOCUMENTS, "npz", default="what came in; of --init json")
def command(
    file: str,
    wrt: Sequence[Any],
    optimizer: str,
    init: bool,
    files: tuple[str, ...],
    out: str | None,
    format_: str | None,
    **given: Any,
) -> None:
    """Write a training step as a document.

    It takes data, weights (--wrt) and what the optimizer keeps beside each, and gives the loss, the new weights and what is kept
    next, by the names of the inputs that these are fed back into (in ONNX NAME:out). The loss is the first --output, or the only
    output that is a real number; other outputs stay.

    \b
      tidu step loss.json --wrt 'params.*' --optimizer adam --lr 1e-3 -o step.json
      tidu step loss.json --wrt 'params.*' --optimizer adam --init --inputs w.npz -o state.npz
      tidu eval step.json --inputs batch.npz --inputs state.npz --force -o state.npz

    An optimizer of your own takes numbers gradient, weight, lr, step (1, 2, ...) and weight_decay, or some of these, and any x that
    it keeps beside a weight, and gives new_weight and new_x.
    """
    from tidu_cli.api.training import initial_state
    from tidu_cli.api.training import step as training_step

    chosen = chosen_format(out, format_, "json")
    if files and not init:
        raise click.UsageError("--inputs has values for --init")
    if init and is_foreign(chosen):
        raise click.UsageError(f"{chosen} is for documents; write values as json, npz or msgpack")
    if not init and chosen == "npz":
        raise click.UsageError("npz is for values, which --init writes")
    require_stdin_once(file, optimizer, *files)
    document, came_in = load(file, (), files)
    rule = _optimizer(optimizer)
    if not init:
        emit(training_step(document, wrt, optimizer=rule, **given), out, format_, came_in)
        return
    from tidu_cli.formats.values import write_values
    from tidu_cli.runtime.inputs import type_of_value

    require_printable(out, chosen)
    values = initial_state(document, wrt, rule, given["accumulate"], given_values(document, (), files))
    types = {parse_key(key): type_of_value(key, value) for key, value in values.items()}
    emit_bytes(write_values(dict(zip(types, values.values(), strict=True)), chosen, types), out)


def _optimizer(text: str) -> str | Document:
    """An optimizer that is named, or its document, read or built of numbers."""
    if text.isidentifier() and not os.path.exists(text):
        return text
    kind = kind_of(text, shared=True)
    if kind == "file":
        return load(text).document
    names = names_of(text, kind) or ()
    document: Document = source_named(kind).build(text, dict.fromkeys(names, parse_type("f64[]")), data=None, name=None, outputs=())
    return document
