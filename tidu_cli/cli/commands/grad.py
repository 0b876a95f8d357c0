"""tidu grad: the gradient of a real number."""

from __future__ import annotations

from typing import Any

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import example
from tidu_cli.cli.pipeline_options import run_shorthand, shorthand_options, value_option, wrt_option
from tidu_cli.graph.keys import Key


@click.command(cls=Command, epilog=example("tidu grad samples/f.json --wrt x --set x=3"))
@wrt_option
@value_option
@shorthand_options
def command(wrt: tuple[Key, ...], value: bool, outputs: tuple[Key, ...], **given: Any) -> None:
    """Derive the gradient of an output, a real number.

    It gives the cotangent x@-1 of each --wrt input, where that of the output is 1, and is short for

    \b
      tidu linearize FILE --wrt x | tidu transpose |
        tidu materialize --set y@-1=1
    """
    from tidu_cli.transforms.shorthands import grad

    run_shorthand(lambda document: grad(document, wrt, outputs, value=value), **given)
