"""tidu jacobian: all first derivatives."""

from __future__ import annotations

from typing import Any

import click

from tidu_cli.cli.options import holomorphic_option, wrt_option
from tidu_cli.cli.pipeline_options import shorthand


@shorthand(
    "jacobian",
    "tidu jacobian samples/vector.json --wrt x --set 'x=[1,2,3]'",
    wrt_option,
    click.option("--forward", "mode", flag_value="forward", help="By columns: one for each element of the inputs."),
    click.option("--reverse", "mode", flag_value="reverse", help="By rows: one for each element of the outputs."),
    holomorphic_option,
)
def command(mode: str | None, **given: Any) -> dict[str, Any]:
    """Derive the Jacobian, in one pass.

    It gives a block y/x for each output y and each --wrt input x, with the axes of y and then those of x, and is short for

    \b
      tidu linearize FILE --wrt x | tidu matrix | tidu materialize

    by columns, or where there are fewer elements of outputs than of inputs, by rows:

    \b
      tidu linearize FILE --wrt x | tidu transpose | tidu matrix |
        tidu materialize
    """
    return given | {"reverse": None if mode is None else mode == "reverse"}
