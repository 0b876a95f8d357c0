"""The options that bound work, which every command has: see `tidu_cli.limits`."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import click

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
        from tidu_cli.errors import TiduError
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
