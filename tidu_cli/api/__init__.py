"""tidu in Python: what the commands do, on documents in memory. Names and order of arguments are the commands'.

Keys are text, such as "x" or "y@-1", or `Key`s. `docs/python.md` shows examples.
"""

from tidu_cli.api.documents import (
    compose,
    derivative,
    grad,
    hessian,
    hvp,
    jacobian,
    jvp,
    linearize,
    materialize,
    matrix,
    rename,
    renumber,
    resolve,
    to_dot,
    transpose,
    vjp,
)
from tidu_cli.api.evaluation import Compiled, compile, evaluate
from tidu_cli.api.files import load, load_values, save, save_values
from tidu_cli.api.reports import check, diff, info, schema, show
from tidu_cli.errors import TiduError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key

__all__ = [
    "Compiled",
    "Document",
    "Key",
    "TiduError",
    "check",
    "compile",
    "compose",
    "derivative",
    "diff",
    "evaluate",
    "grad",
    "hessian",
    "hvp",
    "info",
    "jacobian",
    "jvp",
    "linearize",
    "load",
    "load_values",
    "materialize",
    "matrix",
    "rename",
    "renumber",
    "resolve",
    "save",
    "save_values",
    "schema",
    "show",
    "to_dot",
    "transpose",
    "vjp",
]
