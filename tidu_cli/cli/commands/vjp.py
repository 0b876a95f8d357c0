"""tidu vjp: vector-Jacobian products."""

from __future__ import annotations

from typing import Any

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import example
from tidu_cli.cli.pipeline_options import run_shorthand, shorthand_options, value_option, wrt_option
from tidu_cli.graph.keys import Key


@click.command(cls=Command, epilog=example("tidu vjp samples/f.json --wrt x --set x=3 --set y@-1=1"))
@wrt_option
@value_option
@shorthand_options
def command(wrt: tuple[Key, ...], value: bool, outputs: tuple[Key, ...], **given: Any) -> None:
    """Derive vector-Jacobian products: reverse mode.

    It takes the cotangents y@-1 of the outputs to those of the --wrt inputs, x@-1, and is short for

    \b
      tidu linearize FILE --wrt x | tidu transpose | tidu materialize
    """
    from tidu_cli.transforms.shorthands import vjp

    run_shorthand(lambda document: vjp(document, wrt, outputs, value=value), **given)
