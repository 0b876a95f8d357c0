"""tidu vjp: vector-Jacobian products."""

from __future__ import annotations

from typing import Any

from tidu_cli.cli.options import wrt_option
from tidu_cli.cli.pipeline_options import shorthand, value_option


@shorthand("vjp", "tidu vjp samples/f.json --wrt x --set x=3 --set y@-1=1", wrt_option, value_option)
def command(**given: Any) -> dict[str, Any]:
    """Derive vector-Jacobian products: reverse mode.

    It takes the cotangents y@-1 of the outputs to those of the --wrt inputs, x@-1, and is short for

    \b
      tidu linearize FILE --wrt x | tidu transpose | tidu materialize
    """
    return given
