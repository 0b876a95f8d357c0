"""tidu hvp: Hessian-vector products."""

from __future__ import annotations

from typing import Any

from tidu_cli.cli.options import wrt_option
from tidu_cli.cli.pipeline_options import shorthand


@shorthand("hvp", "tidu hvp samples/rosenbrock.json --wrt x --set x=1 --set y=2 --set x@2=1", wrt_option)
def command(**given: Any) -> dict[str, Any]:
    """Derive Hessian-vector products of a real number.

    Forward over reverse, it takes the tangents x@2 of the --wrt inputs to those of the gradient, x@-1@2, and is short for

    \b
      tidu linearize FILE --wrt x | tidu transpose | tidu linearize --wrt x |
        tidu materialize --set y@-1=1
    """
    return given
