"""tidu hvp: Hessian-vector products."""

from __future__ import annotations

from typing import Any

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import example
from tidu_cli.cli.pipeline_options import run_shorthand, shorthand_options, wrt_option
from tidu_cli.graph.keys import Key


@click.command(cls=Command, epilog=example("tidu hvp samples/rosenbrock.json --wrt x --set x=1 --set y=2 --set x@2=1"))
@wrt_option
@shorthand_options
def command(wrt: tuple[Key, ...], outputs: tuple[Key, ...], **given: Any) -> None:
    """Derive Hessian-vector products of a real number.

    Forward over reverse, it takes the tangents x@2 of the --wrt inputs to those of the gradient, x@-1@2, and is short for

    \b
      tidu linearize FILE --wrt x | tidu transpose | tidu linearize --wrt x |
        tidu materialize --set y@-1=1
    """
    from tidu_cli.transforms.shorthands import hvp

    run_shorthand(lambda document: hvp(document, wrt, outputs), **given)
