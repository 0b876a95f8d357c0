"""tidu grad: the gradient of a real number."""

from __future__ import annotations

from typing import Any

from tidu_cli.cli.options import wrt_option
from tidu_cli.cli.pipeline_options import shorthand, value_option


@shorthand("grad", "tidu grad samples/f.json --wrt x --set x=3", wrt_option, value_option)
def command(**given: Any) -> dict[str, Any]:
    """Derive the gradient of an output, a real number.

    It gives the cotangent x@-1 of each --wrt input, where that of the output is 1, and is short for

    \b
      tidu linearize FILE --wrt x | tidu transpose |
        tidu materialize --set y@-1=1
    """
    return given
