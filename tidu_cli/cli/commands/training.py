"""What chooses inputs so that an output is small.

tidu step: a training step, the gradient and what an optimizer makes of it.
tidu minimize: SciPy's optimizers, run to their end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import click

from tidu_cli.cli import options
from tidu_cli.cli.building import kind_of
from tidu_cli.cli.evaluation_options import engine_options, given_values, inputs_option, interruptible, set_option
from tidu_cli.cli.main import Command
from tidu_cli.cli.messages import note
from tidu_cli.cli.out_option import result_options
from tidu_cli.cli.sources import names_of
from tidu_cli.errors import DocumentError, EvaluationError, counted
from tidu_cli.formats.files import DOCUMENTS
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import parse_key
from tidu_cli.graph.literals import spelled
from tidu_cli.graph.types import parse_type
from tidu_cli.installed import is_foreign, source_named
from tidu_cli.streams import data_stream, is_stdout


@click.command(
    cls=Command, epilog=options.example("tidu step samples/mlp.json --wrt W1 --wrt b1 --optimizer adam --lr 1e-3 | tidu info")
)
@options.file_argument
@options.option("wrt", required=True)
@options.option("output")
@options.option("optimizer", default="sgd")
@options.option("lr")
@options.option("clip_norm")
@options.option("weight_decay")
@options.option("accumulate", type=options.Whole(1))
@options.option("strong_zeros")
@click.option("--init", is_flag=True, help="Write the values to begin with: weights of --inputs, and zeros beside them.")
@inputs_option
@result_options(*DOCUMENTS, "npz", default="what came in; of --init json")
def step(
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

    chosen = options.chosen_format(out, format_, "json")
    if files and not init:
        raise click.UsageError("--inputs has values for --init")
    if init and is_foreign(chosen):
        raise click.UsageError(f"{chosen} is for documents; write values as json, npz or msgpack")
    if not init and chosen == "npz":
        raise click.UsageError("npz is for values, which --init writes")
    options.require_stdin_once(file, optimizer, *files)
    document, came_in = options.load(file, (), files)
    rule = _optimizer(optimizer)
    if not init:
        options.emit(training_step(document, wrt, optimizer=rule, **given), out, format_, came_in)
        return
    options.require_printable(out, chosen)
    values = initial_state(document, wrt, rule, given["accumulate"], given_values(document, (), files))
    options.emit_bytes(_written(values, chosen), out)


def _written(values: Mapping[str, Any], format_: str) -> bytes:
    """Values by the text of their keys, in a format of values."""
    from tidu_cli.formats.values import write_values
    from tidu_cli.runtime.inputs import type_of_value

    types = {parse_key(key): type_of_value(key, value) for key, value in values.items()}
    return write_values(dict(zip(types, values.values(), strict=True)), format_, types)


def _optimizer(text: str) -> str | Document:
    """An optimizer that is named, or its document, read or built of numbers."""
    if text.isidentifier() and not os.path.exists(text):
        return text
    kind = kind_of(text, shared=True)
    if kind == "file":
        return options.load(text).document
    names = names_of(text, kind) or ()
    return source_named(kind).build(text, dict.fromkeys(names, parse_type("f64[]")), data=None, name=None, outputs=())


def _new_trace(ctx: click.Context, param: click.Parameter, trace: str | None) -> str | None:
    """The file for a trace: one that is not there, a device, or a trace."""
    if trace and os.path.isfile(trace) and not ctx.meta.get("--force"):
        from tidu_cli.api.fitting import TRACE

        with open(trace, "rb") as file:
            if file.readline().strip() != TRACE.encode():
                raise click.BadParameter(f"'{trace}' exists, and is not a trace; give another name, or --force", ctx, param)
    return trace


@click.command(
    cls=Command, epilog=options.example("tidu minimize samples/rosenbrock.json --wrt x --wrt y --set x=-1 --set y=1 --quiet")
)
@options.file_argument
@options.option("wrt", required=True)
@options.option("output")
@options.option("method")
@options.option("bounds")
@set_option("An input's value; of a --wrt input where it starts; repeats.")
@inputs_option
@options.option("max_iterations", type=options.Whole(1))
@options.option("tolerance")
@options.option("trace", callback=_new_trace)
@options.option("strong_zeros")
@engine_options
@click.option("--json", "as_json", is_flag=True, help="Print a report, the values in it, as JSON.")
@result_options("json", "npz", "msgpack", default="json")
def minimize(
    file: str,
    bounds: Sequence[tuple[Any, Any]],
    settings: tuple[str, ...],
    files: tuple[str, ...],
    as_json: bool,
    out: str | None,
    format_: str | None,
    **given: Any,
) -> None:
    """Choose inputs so that an output is least.

    SciPy's optimizers do it, with tidu's derivatives. The values of the --wrt inputs are printed, or written to OUT, by their
    names, so that they are given again with --inputs OUT: to evaluate there, or to go on from there. With --method least_squares
    the output has residuals, half the sum of their squares is minimized, and a note has the standard errors.

    \b
      tidu minimize loss.json --wrt 'params.*' --inputs data.npz --inputs start.json -o fit.json
      tidu eval loss.json --inputs data.npz --inputs fit.json
      tidu minimize loss.json --wrt 'params.*' --inputs data.npz --inputs fit.json -o better.json

    Where the optimizer stops before it has converged, the best point is written all the same, a line says why, and the status is 1.
    So it is where Ctrl-C stops it, if -o names a file.
    """
    from tidu_cli.api.fitting import minimize as minimized

    if as_json and (is_stdout(out) if out else format_):
        raise click.UsageError(
            "--json prints a report, with the values; -o OUT and --format are for a file of the values beside it"
        )
    options.require_stdin_once(file, *files)
    chosen = options.chosen_format(out, format_, "json")
    if not as_json:
        options.require_printable(out, chosen)
    document = options.load(file, settings, files).document
    values = given_values(document, settings, files)
    _require_place(out)
    _require_place(given["trace"] or out)
    with interruptible():
        try:
            report = minimized(document, inputs=values, bounds=dict(bounds), **given)
        except KeyboardInterrupt as interrupt:
            if not interrupt.args or out is None or is_stdout(out):
                raise KeyboardInterrupt from None
            options.emit_bytes(_written(interrupt.args[0]["values"], chosen), out)
            raise KeyboardInterrupt(
                f"{out} has the best point, {_summary(interrupt.args[0])}; --inputs {out} goes on there"
            ) from None
    if as_json:
        options.emit_json(_plain(report))
    if out or not as_json:
        options.emit_bytes(_written(report["values"], chosen), out)
    if not report["success"]:
        raise EvaluationError(f"not converged {_summary(report)}: {report['message']}")
    if not as_json:
        note(f"converged {_summary(report)}")
        if "standard_errors" in report:
            errors = report["standard_errors"]
            told = "not determined by the residuals" if errors is None else _written(errors, "json").decode().strip()
            note(f"standard errors: {told}")


def _require_place(out: str | None) -> None:
    """Raises DocumentError, before the work, where the result could not be written."""
    from tidu_cli.formats.write import require_replaceable

    if out is None or is_stdout(out):
        if data_stream() is None:
            raise DocumentError("stdout: is closed")
        return
    require_replaceable(out, "data")
    if not os.path.isdir(folder := os.path.dirname(out) or "."):
        raise DocumentError(f"{out}: there is no folder {folder}")


def _summary(report: dict[str, Any]) -> str:
    done = f"after {counted(report['iterations'], 'iteration')} and {counted(report['evaluations'], 'evaluation')}"
    return f"{done}: cost {report['cost']:.6g}, gradient norm {report['gradient_norm']:.1g}"


def _plain(report: dict[str, Any]) -> dict[str, Any]:
    """A report as JSON has it."""
    plain = {name: spelled(x) if isinstance(x, float) else x for name, x in report.items()}
    plain |= {name: json.loads(_written(report[name], "json")) for name in ("values", "standard_errors") if report.get(name)}
    return plain if report.get("covariance") is None else plain | {"covariance": report["covariance"].tolist()}
