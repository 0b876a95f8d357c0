"""tidu eval: the values of outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import (
    chosen_format,
    emit_bytes,
    example,
    file_argument,
    known_primitives,
    load_from,
    output_keys_option,
    require_printable,
    require_stdin_once,
    result_options,
    shown,
)
from tidu_cli.cli.value_options import batch_option, given_axes, given_moves, given_values, inputs_option, move_options, set_option
from tidu_cli.errors import EvaluationError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key

if TYPE_CHECKING:
    from tidu_cli.formats.source import Source
    from tidu_cli.graph.types import Type

_FORMATS = ("json", "npz", "msgpack")


@click.command(cls=Command, epilog=example("tidu eval samples/f.json --set x=3"))
@file_argument
@set_option("An input's value, as JSON (3, [1,2], ...) or @FILE.npy; repeats.")
@inputs_option
@output_keys_option
@move_options
@batch_option
@result_options(*_FORMATS, default="json")
def command(
    file: str,
    settings: tuple[str, ...],
    files: tuple[str, ...],
    batches: tuple[str, ...],
    outputs: tuple[Key, ...],
    moves: tuple[str, ...],
    move_files: tuple[str, ...],
    out: str | None,
    format_: str | None,
) -> None:
    """Evaluate the head's outputs, and print them by key.

    A document of several graphs is materialized first. FILE may also be a program that `tidu compile` made. Inputs come from
    --inputs files, then from --set, which wins; files may hold more than is needed. Records are objects of their fields, tuples
    lists; datetimes are text such as 2026-01-31T12:00, durations numbers. Of a tangent or cotangent, and of a field of one, null is
    zero.

    With --move and --moves the inputs are first moved along tangents, of any type that theirs admits: typed data says which, and
    otherwise it is the natural one. Fields of records that are left out do not move. So one step of gradient descent is to
    evaluate at --moves the output of `tidu vjp` with a cotangent y@-1 of -0.1.

    With --batch some inputs have one more axis than declared, along which there are many values of them; the graph is evaluated for
    all, and every output has the batch as its first axis. Inputs without --batch are shared.
    """
    from tidu_cli.formats.files import reading
    from tidu_cli.formats.programs import is_program
    from tidu_cli.formats.values import write_values

    require_stdin_once(file, *files, *move_files)
    chosen = chosen_format(out, format_, "json")
    require_printable(out, chosen)
    if batches and (moves or move_files):
        raise click.UsageError("--batch and --move do not go together: add retract to the graph, or move the batch before")
    with reading(file) as source:
        evaluated = _program(source, file) if is_program(source) else _document(load_from(source, file).document)

    def given(document: Document) -> _Given:
        axes = given_axes(document, batches)
        return _Given(given_values(document, settings, files), given_moves(document, moves, move_files), axes, outputs)

    results, types = evaluated(given)
    emit_bytes(write_values(results, chosen, types), out)


class _Given(NamedTuple):
    """What the options say of an evaluation."""

    values: dict[Key, object]
    moves: dict[Key, object]
    axes: dict[Key, int]
    outputs: tuple[Key, ...]


_Results = tuple[dict[Key, Any], dict[Key, "Type"]]
_Evaluated = Callable[[Callable[[Document], _Given]], _Results]
"""From what is given for a document's inputs to its results."""


def _document(document: Document) -> _Evaluated:
    def evaluated(given: Callable[[Document], _Given]) -> _Results:
        from tidu_cli.runtime.evaluate import evaluate
        from tidu_cli.transforms.materialize import materialize

        nonlocal document
        values, moves, axes, outputs = given(document)
        head = materialize(document, outputs=outputs).head
        del document  # which may be as large
        if axes:
            from tidu_cli.runtime.batches import evaluate_batch
            from tidu_cli.transforms.vectorize import vectorized

            return evaluate_batch(head, values, axes, vectorized)
        return evaluate(head, values, moves=moves), {o.key: o.type for o in head.outputs}

    return evaluated


def _program(source: Source, file: str) -> _Evaluated:
    from tidu_cli.formats.programs import parse_program

    cases, interface, plan = parse_program(source.read(), shown(file), known_primitives())

    def evaluated(given: Callable[[Document], _Given]) -> _Results:
        from tidu_cli.graph.select import select_outputs
        from tidu_cli.runtime.evaluate import evaluate
        from tidu_cli.runtime.stored import restored

        values, moves, axes, outputs = given(interface)
        if axes:
            raise EvaluationError(f"{shown(file)}: a program takes one value of each input; give --batch with the document")
        chosen = [o for _, o in select_outputs(interface, outputs or None)]
        results = evaluate(restored(cases, interface, plan, shown(file)), values, moves=moves)
        return {o.key: results[o.key] for o in chosen}, {o.key: o.type for o in chosen}

    return evaluated
