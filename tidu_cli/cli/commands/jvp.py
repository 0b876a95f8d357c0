"""tidu jvp: Jacobian-vector products."""

from __future__ import annotations

from typing import Any

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import example
from tidu_cli.cli.pipeline_options import run_shorthand, shorthand_options, value_option, wrt_option
from tidu_cli.graph.keys import Key


@click.command(cls=Command, epilog=example("tidu jvp samples/f.json --wrt x --set x=3 --set x@1=1"))
@wrt_option
@value_option
@shorthand_options
def command(wrt: tuple[Key, ...], value: bool, outputs: tuple[Key, ...], **given: Any) -> None:
    """Derive Jacobian-vector products: forward mode.

    It takes the tangents x@1 of the --wrt inputs to those of the outputs, y@1, and is short for

    \b
      tidu linearize FILE --wrt x | tidu materialize
    """
    from tidu_cli.transforms.shorthands import jvp

    run_shorthand(lambda document: jvp(document, wrt, outputs, value=value), **given)
