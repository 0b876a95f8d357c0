"""The shorthands for pipelines of other commands.

tidu grad: the gradient of a real number.
tidu jvp: Jacobian-vector products.
tidu vjp: vector-Jacobian products.
tidu hvp: Hessian-vector products.
tidu jacobian: all first derivatives.
tidu hessian: second derivatives of a real number.
tidu derivative: derivatives of any order by one number.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import click

from tidu_cli.cli import evaluation_options
from tidu_cli.cli.building import kind_of, types_option, values_of
from tidu_cli.cli.main import Command
from tidu_cli.cli.messages import detail
from tidu_cli.cli.options import (
    Whole,
    chosen_format,
    emit,
    emit_bytes,
    emit_text,
    example,
    file_argument,
    is_plain,
    load_imported,
    option,
    require_printable,
    require_stdin_once,
)
from tidu_cli.cli.out_option import result_options
from tidu_cli.formats.files import DOCUMENTS
from tidu_cli.graph.graph import Document
from tidu_cli.installed import is_foreign

if TYPE_CHECKING:
    from tidu_cli.graph.literals import Literal
    from tidu_cli.transforms.shorthands import Pipeline, Stage


def _shorthand(shown: str, *options: Callable[[Any], Any]) -> Callable[[Callable[..., dict[str, Any]]], click.Command]:
    """The command of the shorthand that has the function's name.

    The function makes the shorthand's arguments of the options' values. The command has the argument FILE, these options and those
    of every shorthand; `shown` is its example.
    """

    def decorate(arguments: Callable[..., dict[str, Any]]) -> click.Command:
        @wraps(arguments)
        def command(
            file: str, tell: bool, engine: str, device: str | None, out: str | None, format_: str | None, **given: Any
        ) -> None:
            from tidu_cli.api.derivatives import pipeline

            settings, files, options = given.pop("settings"), given.pop("files"), _of_readers(given)
            spread = evaluation_options.Spread(
                out=out, **{name: given.pop(name) for name in evaluation_options.Spread._fields if name in given}
            )
            if spread and not (settings or files):
                raise click.UsageError("--scheduler, --chunk and --resume are for values; give them with --set or --inputs")
            if (batches := given.pop("batches", ())) and (spread or not (settings or files)):
                raise click.UsageError("--batch is for values; give them with --set or --inputs, and leave out --scheduler")
            spread.require_out()
            if given.get("sparse") and (tell or spread):
                other = "--pipeline" if tell else "--scheduler, --chunk and --resume"
                why = "its directions are of no pipeline, and of no chunks"
                raise click.UsageError(f"{other} and --sparse exclude each other: {why}")
            require_stdin_once(file, *files)
            evaluates, chosen = bool(settings or files), chosen_format(out, format_, "json")
            if not evaluates and chosen in _OF_VALUES:
                *others, last = DOCUMENTS
                remedy = f"give them with --set or --inputs, or write the document as {', '.join(others)} or {last}"
                raise click.UsageError(f"{chosen} is for values; {remedy}")
            if evaluates and is_foreign(chosen):
                raise click.UsageError(
                    f"{chosen} is for documents; write values as json, csv, npy, npz, msgpack or table, "
                    "or leave out --set and --inputs"
                )
            if not tell:
                require_printable(out, chosen)
            imported, came_in = load_imported(file, options, settings, files)
            is_sized = spread or (given.get("sparse") and evaluates)  # as chunks and patterns are of the sizes that values have
            document = evaluation_options.sized_by_values(imported.document, settings, files) if is_sized else imported.document
            run = pipeline(arguments.__name__, document, **arguments(**{**given, "wrt": given["wrt"] or None}))
            if not given["wrt"]:
                detail(f"by {', '.join(map(str, run.wrt))}")
            if tell:
                how = [*_repeated("--batch", batches), *evaluation_options.engine_words(engine, device)]
                emit_text(_commands(run, imported.document, file, settings, files, options, how, out, format_))
                return

            def finish() -> None:
                if not evaluates:
                    emit(run.document, out, format_, came_in)
                    return
                axes, values = (
                    evaluation_options.given_axes(run.document, batches),
                    evaluation_options.given_values(run.document, settings, files),
                )
                if imported.weights:
                    from tidu_cli.cli.format_options import values_read

                    values = values_read(imported) | values
                if spread:
                    from tidu_cli.api.streaming import matrix_by_chunks

                    choose = partial(evaluation_options.chosen_engine, engine=engine, device=device)
                    evaluation_options.emit_chunks(partial(matrix_by_chunks, run, values, choose), spread, chosen)
                    return
                from tidu_cli.api.evaluation import of_given_sizes, values_of
                from tidu_cli.formats.values import write_values

                head = of_given_sizes(run.document.head, values, axes)
                results, types = values_of(head, values, evaluation_options.chosen_engine(head, engine, device), batch=axes)
                emit_bytes(write_values(results, chosen, types), out)

            if not options:
                finish()
                return
            from tidu_cli.cli.format_options import with_values_written

            with_values_written(imported, options, finish)

        decorated: Any = command
        for decorate in reversed((*options, *_SHARED)):
            decorated = decorate(decorated)
        return click.command(cls=_Shorthand, epilog=_MODELS + example(shown))(decorated)

    return decorate


_READERS = "tidu.readers"
"""Under which click's context holds the options of readers, where the command line has some."""

_MODELS = """Of a model, the options of tidu convert that say how it is read are taken, too: --dim, --weights, --cut, --stop, ...

"""


class _Shorthand(Command):
    """A shorthand. Options that are not its own are those of readers, which are imported only where the command line has some."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line."""
        taken = {flag for param in self.get_params(ctx) for flag in param.opts}
        if any(word.startswith("--") and word.partition("=")[0] not in taken for word in args):
            from tidu_cli.cli.format_options import readers_options

            ctx.meta[_READERS] = readers_options(ctx, args, taken)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The parameters, with those of readers."""
        return [*super().get_params(ctx), *ctx.meta.get(_READERS, ())]


def _of_readers(given: dict[str, Any]) -> dict[str, Any]:
    """The options of readers, which are taken out of what was given."""
    if not (known := click.get_current_context().meta.get(_READERS)):
        return {}
    from tidu_cli.cli.format_options import options_read

    return options_read({option.name: given.pop(option.name) for option in known})


_OF_VALUES = ("csv", "npy", "npz", "mtx", "table")

_SHARED: tuple[Callable[[Any], Any], ...] = (
    file_argument,
    option("output"),
    types_option,
    evaluation_options.set_option("An input's value: evaluate, and print values in place of the document; repeats."),
    evaluation_options.inputs_option,
    evaluation_options.engine_options,
    click.option("--pipeline", "tell", is_flag=True, help="Print the pipeline of commands that does the same, and stop."),
    result_options(*DOCUMENTS, *_OF_VALUES, default="what came in; of values json"),
)
"""The options of every shorthand."""

_WRT = option("wrt")
_SPREAD = (option("scheduler"), option("chunk", type=Whole(1)), option("resume"))


@_shorthand(
    "tidu grad samples/f.json --wrt x --set x=3",
    _WRT,
    option("sum"),
    option("value"),
    option("strong_zeros"),
    evaluation_options.batch_option,
)
def grad(**given: Any) -> dict[str, Any]:
    """Derive the gradient of an output, a real number.

    It gives the cotangent x@-1 of each --wrt input, where that of the output is 1, and is short for

    \b
      tidu linearize FILE --wrt x | tidu transpose |
        tidu materialize --set y@-1=1
    """
    return given


@_shorthand("tidu jvp samples/f.json --wrt x --set x=3 --set x@1=1", _WRT, option("value"), evaluation_options.batch_option)
def jvp(**given: Any) -> dict[str, Any]:
    """Derive Jacobian-vector products: forward mode.

    It takes the tangents x@1 of the --wrt inputs to those of the outputs, y@1, and is short for

    \b
      tidu linearize FILE --wrt x | tidu materialize
    """
    return given


@_shorthand(
    "tidu vjp samples/f.json --wrt x --set x=3 --set y@-1=1",
    _WRT,
    option("value"),
    option("strong_zeros"),
    evaluation_options.batch_option,
)
def vjp(**given: Any) -> dict[str, Any]:
    """Derive vector-Jacobian products: reverse mode.

    It takes the cotangents y@-1 of the outputs to those of the --wrt inputs, x@-1, and is short for

    \b
      tidu linearize FILE --wrt x | tidu transpose | tidu materialize
    """
    return given


@_shorthand(
    "tidu hvp samples/rosenbrock.json --wrt x --set x=1 --set y=2 --set x@2=1",
    _WRT,
    option("sum"),
    option("strong_zeros"),
    evaluation_options.batch_option,
)
def hvp(**given: Any) -> dict[str, Any]:
    """Derive Hessian-vector products of a real number.

    Forward over reverse, it takes the tangents x@2 of the --wrt inputs to those of the gradient, x@-1@2, and is short for

    \b
      tidu linearize FILE --wrt x | tidu transpose | tidu linearize --wrt x |
        tidu materialize --set y@-1=1
    """
    return given


@_shorthand(
    "tidu jacobian samples/vector.json --wrt x --set 'x=[1,2,3]'",
    _WRT,
    click.option("--forward", "mode", flag_value="forward", help="By columns: one for each element of the inputs."),
    click.option("--reverse", "mode", flag_value="reverse", help="By rows: one for each element of the outputs."),
    click.option("--both", "mode", flag_value="both", help="With --sparse, some rows by rows and the rest by columns, if fewer."),
    option("sparse"),
    option("holomorphic"),
    option("strong_zeros"),
    evaluation_options.batch_option,
    *_SPREAD,
)
def jacobian(mode: str | None, **given: Any) -> dict[str, Any]:
    """Derive the Jacobian, in one pass.

    With --sparse it has as many directions as columns, or rows, have to be told apart (`tidu sparsity` shows why).

    It gives a block y/x for each output y and each --wrt input x, with the axes of y and then those of x, and is short for

    \b
      tidu linearize FILE --wrt x | tidu matrix | tidu materialize

    by columns, or with --strong-zeros, or where there are fewer elements of outputs than of inputs, by rows:

    \b
      tidu linearize FILE --wrt x | tidu transpose | tidu matrix |
        tidu materialize
    """
    if mode == "forward" and given["strong_zeros"]:
        raise click.UsageError("--strong-zeros is of reverse mode; leave out --forward")
    if mode == "both" and (not given["sparse"] or given["strong_zeros"]):
        raise click.UsageError("--both is of --sparse, and excludes --strong-zeros")
    return given | {"reverse": {"forward": False, "reverse": True}.get(mode or "")}


@_shorthand(
    "tidu hessian samples/rosenbrock.json --wrt x --wrt y --set x=1 --set y=2",
    _WRT,
    option("sum"),
    option("sparse"),
    option("strong_zeros"),
    evaluation_options.batch_option,
    *_SPREAD,
)
def hessian(**given: Any) -> dict[str, Any]:
    """Derive the Hessian of a real number, in one pass.

    It gives a block y/x/z for any two --wrt inputs x and z, with the axes of x and then those of z, and is short for

    \b
      tidu linearize FILE --wrt x | tidu transpose | tidu linearize --wrt x |
        tidu matrix | tidu materialize --set y@-1=1
    """
    return given


@_shorthand(
    "tidu derivative samples/cube.json --wrt x --order 2 --set x=3",
    option("wrt", multiple=False, required=True, help="The input to differentiate by: one number."),
    option("order", type=Whole(1, 64), default=1),
)
def derivative(**given: Any) -> dict[str, Any]:
    """Derive by one number, N times.

    It gives y@1@2...@N for each output y, and is short for N times linearize, each with the tangent 1 and materialized, so that
    what a pass repeats is not derived again; for N = 2

    \b
      tidu linearize FILE --wrt x | tidu materialize --set x@1=1 |
        tidu linearize --wrt x | tidu materialize --set x@2=1

    The derivative by a complex number is in the direction 1: that of a holomorphic function.
    """
    return given | {"wrt": [given["wrt"]]}


def _commands(
    run: Pipeline,
    document: Document,
    file: str,
    settings: Sequence[str],
    files: Sequence[str],
    options: Mapping[str, Any],
    how: Sequence[str],
    out: str | None,
    format_: str | None,
) -> str:
    """The commands that do the same to a document; `how` says what evaluates."""
    commands = [["tidu", *_words(stage)] for stage in run.stages]
    if options:
        from tidu_cli.cli.format_options import values_file, words_read

        commands.insert(0, ["tidu", "convert", file, *["--plain"] * is_plain(), *words_read(options)])
        files = [*filter(None, [values_file(options)]), *files] if settings or files else files
    elif kind_of(file, settings) == "file":
        takes_stdin = commands[0][1] == "compose"  # which takes several files
        commands[0][2 : 3 if takes_stdin else 2] = [*([] if file == "-" and not takes_stdin else [file]), *["--plain"] * is_plain()]
    else:
        from tidu_cli.cli.sources import words_of

        commands.insert(0, words_of(document, file, settings, files))
        settings = values_of(settings)
    if settings or files:
        commands.append(["tidu", "eval", *_repeated("--set", settings), *_repeated("--inputs", files), *how])
    commands[-1] += [*_repeated("-o", [out] if out else []), *_repeated("--format", [format_] if format_ else [])]
    return " | ".join(" ".join(map(_quoted, command)) for command in commands)


def _quoted(word: str) -> str:
    """A word for the shell; one that would not print by the numbers of its bytes, as bash, zsh, ksh and POSIX 2024 take it."""
    if word.isprintable():
        return shlex.quote(word)
    spelled = word.replace("\\", "\\\\").replace("'", "\\'")
    octal = {ord(c): "".join(f"\\{byte:03o}" for byte in os.fsencode(c)) for c in word if not c.isprintable()}
    return f"$'{spelled.translate(octal)}'"


def _words(stage: Stage) -> list[str]:
    """A stage as a command's words."""
    options = stage.options
    if "formula" in options:
        return ["compose", "-", options["formula"], "-i", options["input"], "--quiet"]
    settings = [f"{key}={_number(literal)}" for key, literal in options.get("fixed", {}).items()]
    words = [*_repeated("--wrt", options.get("wrt", ())), *_repeated("--output", options.get("outputs", ()))]
    flags = [f"--{name.replace('_', '-')}" for name in ("holomorphic", "strong_zeros") if options.get(name)]
    return [stage.transform.__name__, *words, *_repeated("--set", settings), *flags]


def _number(literal: Literal) -> str:
    # Shorthands fix one number, which may have axes: a real one, or of a complex type, which JSON has as its real part.
    from tidu_cli.graph.literals import literal_to_numbers

    rank = literal.type.rank
    return f"{'[' * rank}{literal_to_numbers(literal)[0]:g}{']' * rank}"


def _repeated(option: str, values: Sequence[object]) -> list[str]:
    return [word for value in values for word in (option, str(value))]
