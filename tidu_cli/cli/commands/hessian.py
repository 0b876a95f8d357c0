"""tidu hessian: second derivatives of a real number."""

from __future__ import annotations

from typing import Any

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import example
from tidu_cli.cli.pipeline_options import run_shorthand, shorthand_options, wrt_option
from tidu_cli.graph.keys import Key


@click.command(cls=Command, epilog=example("tidu hessian samples/rosenbrock.json --wrt x --wrt y --set x=1 --set y=2"))
@wrt_option
@shorthand_options
def command(wrt: tuple[Key, ...], outputs: tuple[Key, ...], **given: Any) -> None:
    """Derive the Hessian of a real number, in one pass.

    It gives a block y/x/z for any two --wrt inputs x and z, with the axes of x and then those of z, and is short for

    \b
      tidu linearize FILE --wrt x | tidu transpose | tidu linearize --wrt x |
        tidu matrix | tidu materialize --set y@-1=1
    """
    from tidu_cli.transforms.shorthands import hessian

    run_shorthand(lambda document: hessian(document, wrt, outputs), **given)
