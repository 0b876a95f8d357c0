"""tidu derivative: derivatives of any order by one number."""

from __future__ import annotations

from typing import Any

import click

from tidu_cli.cli.options import KEY
from tidu_cli.cli.pipeline_options import shorthand


@shorthand(
    "derivative",
    "tidu derivative samples/cube.json --wrt x --order 2 --set x=3",
    click.option("--wrt", type=KEY, required=True, metavar="KEY", help="The input to differentiate by: one number."),
    click.option("--order", type=click.IntRange(1, 64), default=1, metavar="N", help="The order, from 1 on. [default: 1]"),
)
def command(**given: Any) -> dict[str, Any]:
    """Derive by one number, N times.

    It gives y@1@2...@N for each output y, and is short for N times linearize, each with the tangent 1 and materialized, so that
    what a pass repeats is not derived again; for N = 2

    \b
      tidu linearize FILE --wrt x | tidu materialize --set x@1=1 |
        tidu linearize --wrt x | tidu materialize --set x@2=1

    The derivative by a complex number is in the direction 1: that of a holomorphic function.
    """
    return given
