"""Which elements of a derivative can be other than zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidu_cli.api.documents import wrt_inputs
from tidu_cli.arguments import KeyTexts, anything, or_none, parsed
from tidu_cli.errors import ArgumentError
from tidu_cli.graph.graph import Document
from tidu_cli.options import OPTIONS, checked

if TYPE_CHECKING:
    from tidu_cli.sparse.patterns import Sparsity

__all__ = ["sparse_array", "sparsity"]


@checked(wrt=or_none(OPTIONS["wrt"].check))
def sparsity(document: Document, wrt: KeyTexts | None = None, output: KeyTexts = (), second: bool = False) -> Sparsity:
    """The pattern of the Jacobian of the outputs by the inputs `wrt`, or of the Hessian of one output for `second`.

    It holds where entries may be other than 0 whatever the inputs are, `row` and `col` in an array of `shape`; rows go through the
    outputs in order, element by element, and columns through the inputs. `matrix` is it as SciPy's csr_array. It is exact where
    nothing cancels; `dense` names the ops of which only the axes are known along which all depends on all. Raises as `linearize`,
    and LimitError for more entries than memory is allowed for.
    """
    from tidu_cli.sparse import derivatives

    outputs = parsed(output)
    of = derivatives.of_hessian if second else derivatives.of_jacobian
    return of(document, wrt_inputs(document, wrt, outputs), outputs)


@checked(values=anything)
def sparse_array(values: Mapping[str, Any]) -> Any:
    """SciPy's coo_array of the values of a sparse Jacobian or Hessian: of what `evaluate` gives, a `Compiled`, or `load_values`.

    Raises ArgumentError where these are not `data`, `row`, `col` and `shape`.
    """
    from scipy.sparse import coo_array  # type: ignore[import-untyped]

    parts = {str(key): value for key, value in values.items()} if isinstance(values, Mapping) else {}
    if missing := {"data", "row", "col", "shape"} - parts.keys():
        lacking = ", ".join(sorted(missing))
        raise ArgumentError(f"argument 'values' has no {lacking}: give what a document of jacobian(..., sparse=True) evaluates to")
    try:
        return coo_array((parts["data"], (parts["row"], parts["col"])), shape=tuple(int(n) for n in parts["shape"]))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"argument 'values' is not a sparse matrix: {' '.join(str(error).split())}") from None
