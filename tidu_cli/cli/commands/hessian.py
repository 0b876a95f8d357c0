"""tidu hessian: second derivatives of a real number."""

from __future__ import annotations

from typing import Any

from tidu_cli.cli.options import wrt_option
from tidu_cli.cli.pipeline_options import shorthand


@shorthand("hessian", "tidu hessian samples/rosenbrock.json --wrt x --wrt y --set x=1 --set y=2", wrt_option)
def command(**given: Any) -> dict[str, Any]:
    """Derive the Hessian of a real number, in one pass.

    It gives a block y/x/z for any two --wrt inputs x and z, with the axes of x and then those of z, and is short for

    \b
      tidu linearize FILE --wrt x | tidu transpose | tidu linearize --wrt x |
        tidu matrix | tidu materialize --set y@-1=1
    """
    return given
