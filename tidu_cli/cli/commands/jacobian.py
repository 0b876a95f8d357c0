"""tidu jacobian: all first derivatives."""

from __future__ import annotations

from typing import Any

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import example
from tidu_cli.cli.pipeline_options import run_shorthand, shorthand_options, wrt_option
from tidu_cli.graph.keys import Key


@click.command(cls=Command, epilog=example("tidu jacobian samples/vector.json --wrt x --set 'x=[1,2,3]'"))
@wrt_option
@click.option("--forward", "mode", flag_value="forward", help="By columns: one for each element of the inputs.")
@click.option("--reverse", "mode", flag_value="reverse", help="By rows: one for each element of the outputs.")
@click.option("--holomorphic", is_flag=True, help="Inputs and outputs are complex, and the function is holomorphic.")
@shorthand_options
def command(wrt: tuple[Key, ...], mode: str | None, holomorphic: bool, outputs: tuple[Key, ...], **given: Any) -> None:
    """Derive the Jacobian, in one pass.

    It gives a block y/x for each output y and each --wrt input x, with the axes of y and then those of x, and is short for

    \b
      tidu linearize FILE --wrt x | tidu matrix | tidu materialize

    by columns, or where there are fewer elements of outputs than of inputs, by rows:

    \b
      tidu linearize FILE --wrt x | tidu transpose | tidu matrix |
        tidu materialize
    """
    from tidu_cli.transforms.shorthands import jacobian

    reverse = None if mode is None else mode == "reverse"
    run_shorthand(lambda document: jacobian(document, wrt, outputs, reverse=reverse, holomorphic=holomorphic), **given)
