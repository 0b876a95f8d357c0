"""The command `tidu`: finds the subcommand, and turns every failure into one line and a status.

Subcommands are imported when they are called: `tidu --version` imports nothing but click.

Every command has the options that bound work: see `tidu_cli.limits`.
"""

from __future__ import annotations

import gc
import importlib
import io
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import click

from tidu_cli import __version__
from tidu_cli.cli.messages import Context, Progress, detail, error, is_quiet, is_terminal, is_verbose, level_options, note, shown
from tidu_cli.errors import ArgumentError, TiduError, called_in_shell, printable
from tidu_cli.notes import heard_by
from tidu_cli.streams import data_alone, take_descriptor

_CHOSEN = f"{__name__}.chosen"

_OPTIONS = (
    ("memory", "SIZE", "Refuse to start if more memory is needed, such as 512M or 2G.", "the machine's"),
    ("nodes", "N", "Refuse documents of more nodes, own ops written out.", "100M"),
    ("expansion", "N", "Refuse own ops and formulas that stand for more nodes than are written.", "200k"),
    ("steps", "N", "Stop an evaluation whose loops run more steps, all together.", "any number; where inputs are drawn 1M"),
)


def limit_options() -> list[click.Option]:
    """The options --max-memory, --max-nodes, --max-expansion and --max-steps, each with its variable of the environment."""

    def remember(ctx: click.Context, param: click.Parameter, text: str | None) -> None:
        if text is None:
            return
        from tidu_cli.limits import parse_count, parse_size

        try:
            limit = parse_size(text) if param.name == "max_memory" else parse_count(text)
        except TiduError as error:
            raise click.BadParameter(str(error), ctx, param) from None
        ctx.meta.setdefault(_CHOSEN, {})[str(param.name).removeprefix("max_")] = limit

    return [
        click.Option(
            [f"--max-{name}"],
            metavar=metavar,
            envvar=f"TIDU_MAX_{name.upper()}",
            expose_value=False,
            callback=remember,
            help=f"{text} [default: $TIDU_MAX_{name.upper()}, else {default}]",
        )
        for name, metavar, text, default in _OPTIONS
    ]


def limiting(ctx: click.Context) -> AbstractContextManager[None]:
    """Within the block the limits that the command line and the environment give are in force."""
    if not (chosen := ctx.meta.get(_CHOSEN)):
        return nullcontext()
    from tidu_cli.limits import Limits, limited

    return limited(Limits(**chosen))


SHORTHANDS = ("grad", "jvp", "vjp", "hvp", "jacobian", "hessian", "derivative")
"""The subcommands that are short for pipelines of others."""

TOGETHER = {
    "heads": ("transpose", "materialize", "matrix"),
    "linking": ("resolve", "compose", "rename"),
    "shorthands": SHORTHANDS,
    "training": ("step", "minimize"),
    "pictures": ("dot", "view"),
    "looking": ("show", "info", "sparsity"),
    "about": ("schema", "help", "completion"),
}
"""The modules of `commands` that hold several subcommands, each by its name."""

COMMANDS = (
    "build",
    "resolve",
    "compose",
    "linearize",
    "transpose",
    "materialize",
    "matrix",
    "eval",
    *SHORTHANDS,
    "sparsity",
    "step",
    "minimize",
    "dot",
    "view",
    "check",
    "show",
    "info",
    "diff",
    "convert",
    "rename",
    "schema",
    "ops",
    "completion",
    "help",
)
"""Every subcommand, in the order of the help: the module of that name holds it as `command` unless it stands with others."""


def module_of(name: str) -> str:
    """The module of `tidu_cli.cli.commands` that holds a subcommand."""
    return next((module for module, names in TOGETHER.items() if name in names), name)


class _Commands(click.Group):
    """A group whose subcommands live in modules of their own."""

    context_class = Context

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.params += level_options()

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"tidu_cli.cli.commands.{(name := module_of(cmd_name))}")
        command: click.Command = getattr(module, cmd_name if name in TOGETHER else "command")
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from tidu_cli.cli.mistakes import meant

            ctx.fail(f"no command '{printable(args[0])}'{meant(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with called_in_shell(), heard_by(note, detail):
                return super().invoke(ctx)
        except click.UsageError as failure:
            from tidu_cli.cli.mistakes import with_way_out

            raise with_way_out(failure) from None
        except KeyboardInterrupt:  # of a user's function, as signals end the process; click would say "Aborted!" and exit with 1
            import atexit
            import signal

            if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as `tidu_cli.__main__` sets it: so shells see what ended it
                atexit._run_exitfuncs()  # as of Dask's, which the signal leaves no time for
                os.kill(os.getpid(), signal.SIGINT)
            ctx.exit(130)


class Command(click.Command):
    """A subcommand: failures become `tidu COMMAND: error: ...` on stderr and status 1, or what `failure_status` says.

    Every subcommand has the options that bound its work, --quiet and --verbose, and a progress bar where it works for long.
    """

    context_class = Context

    def __init__(self, *args: Any, failure_status: int = 1, **options: Any) -> None:
        super().__init__(*args, **options)
        self.params += [*limit_options(), *level_options()]
        self.failure_status = failure_status

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Exits with `failure_status` on any failure but wrong usage."""
        from tidu_cli.formats.files import noting

        _collect()
        try:
            with data_alone(), limiting(ctx), noting(overwriting=ctx.meta.get("--force", False)), _progress(ctx):
                return super().invoke(ctx)
        except ArgumentError as failure:  # options that a function of the API does not take together
            raise click.UsageError(str(failure), ctx) from None
        except TiduError as failure:
            fail(ctx, str(failure))
        except MemoryError:
            fail(ctx, "out of memory")
        except RecursionError:
            fail(ctx, "values or constants nest too deeply; a few hundred levels are the most")
        except BrokenPipeError:
            raise  # click ends quietly
        except OSError as failure:
            fail(ctx, f"{failure.filename}: {failure.strerror}" if failure.filename else str(failure.strerror or failure))
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as failure:
            fail(ctx, f"internal error: {type(failure).__name__}: {failure} (a bug in tidu; TIDU_TRACEBACK=1 shows where)")


def _collect() -> None:
    """Have garbage collected from here on, but not looked for in what is here, where `tidu_cli.__main__` waits for that."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def _progress(ctx: click.Context) -> AbstractContextManager[None]:
    draws = is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb" and not is_quiet()
    if not draws and not is_verbose():
        return nullcontext()  # and nothing is watched
    return shown(ctx, Progress(sys.stderr if draws else None, detail))


def fail(ctx: click.Context, message: str) -> None:
    """Say in a line why the command failed, and exit. Called in an except clause."""
    if os.environ.get("TIDU_TRACEBACK") == "1":
        raise  # the failure itself: callers are except clauses
    error(message)
    ctx.exit(ctx.command.failure_status if isinstance(ctx.command, Command) else 1)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="tidu", message="%(prog)s %(version)s")
def cli() -> None:
    """Differentiate computation graphs that live in files.

    A graph file goes in, the graph file of its derivative comes out. Commands read FILE, or standard input, and write to standard
    output, so that they form pipelines. FILE may also be FILE.py:FUNCTION, which is run, or a formula:

    \b
      tidu grad model.py:loss --inputs data.npz --wrt 'params.*'
      tidu grad 'x**2 * sin(y)' --set x=3 --set y=0 --wrt x
      tidu linearize samples/f.json --wrt x | tidu transpose | tidu materialize |
        tidu eval --set x=3 --set y@-1=1

    Keys: x is an input, x@1 its tangent in pass 1, y@-1 the cotangent of y in pass 1.
    """


def main() -> None:
    """Run the command line of this process, whose signals `tidu_cli.__main__` has set."""
    take_descriptor()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # help texts have symbols that not every terminal has
    # pydantic would look for plugins of its own in all installed packages: as long as looking for ours takes, and in vain.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if "_TIDU_COMPLETE" in os.environ:
        from tidu_cli.cli.completion import register

        register()
    try:
        cli(prog_name="tidu", standalone_mode=True)
    except OSError as error:  # of help and version texts: commands tell their own
        click.echo(f"tidu: error: {error.strerror or error}", err=True)
        sys.exit(1)
    finally:
        _drop_unwritten()


def _drop_unwritten() -> None:
    # What could not be written has been complained of already, and Python would try once more as it ends.
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
