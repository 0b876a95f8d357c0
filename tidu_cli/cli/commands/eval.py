"""tidu eval: the values of outputs."""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import Any

import click

from tidu_cli.cli import evaluation_options, options
from tidu_cli.cli.main import Command
from tidu_cli.cli.messages import detail
from tidu_cli.cli.out_option import result_options
from tidu_cli.errors import DocumentError
from tidu_cli.formats.files import is_chunked
from tidu_cli.graph.keys import Key

_FORMATS = ("json", "csv", "npy", "npz", "mtx", "zarr", "msgpack", "table")


@click.command(cls=Command, epilog=options.example("tidu eval samples/f.json --set x=3"))
@options.file_argument
@evaluation_options.set_option(
    "An input's value: 3, .5, 1+2j, 1,2,3, JSON such as [[1,2],[3,4]], or @FILE.npy, @FILE.npz:NAME, @DIR; repeats."
)
@evaluation_options.inputs_option
@options.option("output")
@evaluation_options.move_options
@evaluation_options.batch_option
@options.option("scheduler")
@options.option("chunk", type=options.Whole(1))
@options.option("reduce")
@options.option("resume")
@options.option("kinks")
@click.option("--json", "as_json", is_flag=True, help="With --kinks, print one object, of the values and the list, as JSON.")
@options.option("stream", type=str, is_flag=False, flag_value="json")
@evaluation_options.engine_options
@result_options(*_FORMATS, default="json")
def command(
    file: str,
    settings: tuple[str, ...],
    files: tuple[str, ...],
    batches: tuple[str, ...],
    output: tuple[Key, ...],
    moves: tuple[str, ...],
    move_files: tuple[str, ...],
    kinks: bool,
    as_json: bool,
    stream: str | None,
    engine: str,
    device: str | None,
    out: str | None,
    format_: str | None,
    **cut: Any,
) -> None:
    """Evaluate the head's outputs, and print them by key.

    A document of several graphs is materialized first. Inputs come from --inputs files, then from --set, which wins; files may hold
    more than is needed. Records are objects of their fields, tuples lists; datetimes are text such as 2026-01-31T12:00, durations
    numbers. Of a tangent or cotangent, and of a field of one, null is zero.

    With --move and --moves the inputs are first moved along tangents, of any type that theirs admits: typed data says which, and
    otherwise it is the natural one. Fields of records that are left out do not move. So one step of gradient descent is to
    evaluate at --moves the output of `tidu vjp` with a cotangent y@-1 of -0.1.

    With --batch some inputs have one more axis than declared, along which there are many values of them; the graph is evaluated for
    all, and every output has the batch as its first axis. Inputs without --batch are shared. With --reduce outputs are summed over
    the batch, in pairs. With --scheduler the batch is spread in chunks over processes or machines, with the same results.

    A batch may be more than memory holds. Values in .npy and .npz files, directories of zarr and directories of numbered such files
    are read chunk by chunk, by the processes that need them, and -o OUT.zarr, .npz and .npy are written so: chunks that are done
    are kept in OUT.partial until all are, and a run that broke off goes on from them with --resume.

    With --stream each line of standard input, an object of values by key, is answered by a line: the values of the outputs, or
    {"error": "..."}. The graph is planned once. Inputs of --set and --inputs need not be in the lines.

    With --kinks stderr lists the nodes whose operands tie or sit on a boundary at this point, such as max, abs and sort, and what
    the derivative is taken to be there: by tidu, by JAX's and PyTorch's functions of that name, and by ONNX Runtime's training.
    """
    from tidu_cli.api.evaluation import of_given_sizes, values_of
    from tidu_cli.formats.values import write_values
    from tidu_cli.transforms.materialize import materialize

    spread = evaluation_options.Spread(out=out, **cut)
    if kinks and (stream or spread or batches or moves or move_files):
        raise click.UsageError("--kinks is of one point: leave out --stream, --batch and --move")
    if as_json and (not kinks or out or format_):
        raise click.UsageError(
            "--json goes with --kinks, and prints values and kinks on standard output; values are JSON without it"
        )
    if stream:
        alone, to_stdout = not (spread or batches or moves or move_files), not (out or format_)
        _answer(stream, file, settings, files, output, engine, device, alone=alone, to_stdout=to_stdout)
        return
    options.require_stdin_once(file, *files, *move_files)
    if spread and not batches:
        raise click.UsageError(
            "--scheduler, --chunk, --reduce and --resume are for a batch; say with --batch KEY=0 which input has one"
        )
    spread.require_out()
    chosen = options.chosen_format(out, format_, "json")
    options.require_printable(out, chosen)
    if chosen == "zarr" and (spread.reduce or not batches or not is_chunked(out)):
        raise click.UsageError("zarr holds the results of a --batch, in a directory: -o OUT.zarr; write others as npz")
    if batches and (moves or move_files):
        raise click.UsageError("--batch and --move do not go together: add retract to the graph, or move the batch before")
    document = options.load(file, settings, files).document
    axes = evaluation_options.given_axes(document, batches)
    in_chunks = bool(axes) and (bool(spread) or chosen == "zarr" or evaluation_options.name_directories(settings, files))
    values = evaluation_options.given_values(document, settings, files, axes if in_chunks else ())
    moved = evaluation_options.given_moves(document, moves, move_files)
    head = of_given_sizes(materialize(document, outputs=output).head, values, axes)
    whole = document if kinks else None
    del document  # which may take as much memory as all values
    choice = evaluation_options.chosen_engine(head, engine, device)
    if in_chunks:
        from tidu_cli.api.streaming import values_by_chunks

        evaluation_options.emit_chunks(partial(values_by_chunks, head, values, axes, engine=choice), spread, chosen)
        return
    results, types = values_of(head, values, choice, moves=moved, batch=axes, tell=detail)
    written = write_values(results, chosen, types)
    if whole is not None:
        from tidu_cli.api.checks import kinks as kinks_of

        rows = kinks_of(whole, values, output)
        if as_json:
            options.emit_json({"values": json.loads(written), "kinks": rows})
            return
        evaluation_options.list_kinks(rows)
    options.emit_bytes(written, out)


def _answer(
    kind: str,
    file: str,
    settings: tuple[str, ...],
    files: tuple[str, ...],
    output: tuple[Key, ...],
    engine: str,
    device: str | None,
    *,
    alone: bool,
    to_stdout: bool,
) -> None:
    """Answer each item before the next is read. Raises UsageError for options that do not go together with --stream.

    Raises DocumentError for what ends the stream before its end.
    """
    from tidu_cli.api.streaming import answers, lines, messages
    from tidu_cli.formats.write import write_pieces
    from tidu_cli.transforms.materialize import materialize

    if kind not in ("json", "msgpack"):
        raise click.UsageError(f"--stream is json or msgpack, not '{kind}'; write a file before it: tidu eval {kind} --stream")
    if "-" in (file, *files):
        raise click.UsageError("--stream reads values from standard input; name the files of the document and of --inputs")
    if not to_stdout:
        raise click.UsageError("--stream answers on standard output, line by line; write > FILE, and --stream msgpack for arrays")
    if not alone:
        raise click.UsageError("--stream goes with --set, --inputs, --output, --engine and --device alone")
    if sys.stdin is None:
        raise DocumentError("stdin: is closed, and --stream reads values from it")
    document = options.load(file, settings, files).document
    fixed = evaluation_options.given_values(document, settings, files)
    head = materialize(document, outputs=output).head
    items = (lines if kind == "json" else messages)(sys.stdin.buffer)
    for made in answers(head, fixed, items, kind, evaluation_options.chosen_engine(head, engine, device), tell=detail):
        write_pieces((made,), None)
