"""tidu jvp: Jacobian-vector products."""

from __future__ import annotations

from typing import Any

from tidu_cli.cli.options import wrt_option
from tidu_cli.cli.pipeline_options import shorthand, value_option


@shorthand("jvp", "tidu jvp samples/f.json --wrt x --set x=3 --set x@1=1", wrt_option, value_option)
def command(**given: Any) -> dict[str, Any]:
    """Derive Jacobian-vector products: forward mode.

    It takes the tangents x@1 of the --wrt inputs to those of the outputs, y@1, and is short for

    \b
      tidu linearize FILE --wrt x | tidu materialize
    """
    return given
