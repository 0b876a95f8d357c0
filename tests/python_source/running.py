"""Documents as NumPy source, run as a file is, and compared with the plain interpreter."""

from __future__ import annotations

import warnings

import numpy as np

from tidu_cli.api.evaluation import evaluate
from tidu_cli.formats.write import format_document


def source_of(document):
    """The source of a document."""
    return format_document(document, "py").decode()


def function_of(source):
    """The one public function of a file, as it is imported."""
    space = {}
    exec(compile(source, "graph.py", "exec"), space)
    (function,) = [
        v for k, v in space.items() if callable(v) and getattr(v, "__module__", None) == space.get("__name__") and k[0] != "_"
    ]
    return function


def run(document, values):
    """What the source of a document gives for values of its inputs: by key of outputs."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = function_of(source_of(document))(*values)
    keys = [str(o.key) for o in document.head.outputs]
    return result if isinstance(result, dict) else dict(zip(keys, [result], strict=True))


def expected(document, values):
    """What the plain interpreter gives."""
    with np.errstate(all="ignore"):
        return evaluate(document, {str(i.key): x for i, x in zip(document.head.inputs, values, strict=True)}, engine="numpy")


def alike(actual, due, told="", few=64):
    """Equal dtypes and shapes; integers and bools in all bits, floats but for roundings."""
    actual, due = np.asarray(actual), np.asarray(due)
    assert (actual.dtype, actual.shape) == (due.dtype, due.shape), told
    if actual.dtype.kind not in "fc":
        np.testing.assert_array_equal(actual, due, err_msg=str(told))
        return
    eps = few * np.finfo(actual.dtype).eps
    scale = np.abs(due[np.isfinite(due)]).max(initial=0)
    np.testing.assert_allclose(actual, due, eps, eps * float(scale), err_msg=str(told))
