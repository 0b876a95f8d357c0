"""tidu in Python: what the commands do, on documents in memory. Names and order of arguments are the commands'.

Keys are text, such as "x" or "y@-1", or `Key`s. `docs/python.md` shows examples.
"""

from tidu_cli.api.documents import (
    compose,
    cond,
    derivative,
    fori_loop,
    formula,
    from_jax,
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
    scan,
    static,
    switch,
    to_dot,
    trace,
    transpose,
    vjp,
    while_loop,
)
from tidu_cli.api.evaluation import Compiled, compile, evaluate, to_jax
from tidu_cli.api.files import load, load_onnx, load_values, save, save_values
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
    "cond",
    "derivative",
    "diff",
    "evaluate",
    "fori_loop",
    "formula",
    "from_jax",
    "grad",
    "hessian",
    "hvp",
    "info",
    "jacobian",
    "jvp",
    "linearize",
    "load",
    "load_onnx",
    "load_values",
    "materialize",
    "matrix",
    "rename",
    "renumber",
    "resolve",
    "save",
    "save_values",
    "scan",
    "schema",
    "show",
    "static",
    "switch",
    "to_dot",
    "to_jax",
    "trace",
    "transpose",
    "vjp",
    "while_loop",
]
