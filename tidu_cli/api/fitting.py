"""Inputs chosen so that an output is least, by SciPy's optimizers with a document's derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from tidu_cli.api.documents import wrt_inputs
from tidu_cli.api.evaluation import nested
from tidu_cli.api.objectives import MATRICES, Loss, Residuals, Search
from tidu_cli.api.unknowns import Unknowns, flat
from tidu_cli.arguments import BOUNDED, LEAST_SQUARES, KeyTexts, parsed
from tidu_cli.errors import ArgumentError, EvaluationError, LimitError, Remedy
from tidu_cli.formats.write import write_pieces
from tidu_cli.graph.graph import Document
from tidu_cli.graph.literals import spelled
from tidu_cli.limits import format_size, limits
from tidu_cli.options import checked
from tidu_cli.runtime.evaluate import require_given
from tidu_cli.runtime.inputs import value_of_input
from tidu_cli.runtime.sizing import document_of_sizes

if TYPE_CHECKING:
    from numpy.typing import NDArray

TRACE = "iteration,cost,gradient_norm"
"""The first line of a file of `trace`."""

_SQUARE = (*MATRICES, "BFGS", "SLSQP")
"""Methods that hold a matrix of as many rows and columns as there are unknowns."""

_BY_COST = ("L-BFGS-B", "TNC", "SLSQP", LEAST_SQUARES)
"""Methods whose tolerance is, among others, a part of the cost; that of the rest is of gradients or steps."""


@checked()
def minimize(
    document: Document,
    wrt: KeyTexts,
    inputs: Mapping[Any, object] | None = None,
    output: KeyTexts = (),
    method: str | None = None,
    bounds: Mapping[Any, Any] | None = None,
    max_iterations: int | None = None,
    tolerance: float | None = None,
    trace: str | PurePath | None = None,
    strong_zeros: bool = False,
    engine: str | None = None,
    device: str | None = None,
) -> dict[str, Any]:
    """Choose the inputs `wrt` so that an output, a real number, is least; or with "least_squares" half the sum of its squares.

    `inputs` has the values of all inputs as in `evaluate`; those of `wrt` are where it starts. `method` is one of SciPy's that go
    by derivatives, by default "L-BFGS-B"; `tolerance` and `max_iterations` are its `tol` and `maxiter`, of "least_squares"
    `max_nfev`. `bounds` has a pair by key, of numbers, arrays or None: {"x": (0, None)}. `trace` is a file, a .csv, for the cost
    and the gradient's norm after each iteration.

    The result has `values` by key, which `evaluate` takes and `inputs` of another call, to go on; `cost`, `gradient_norm` (of what
    does not point out of bounds), `iterations`, `evaluations`, `method`, `message`, and `success`: whether it converged. Of least
    squares it has `standard_errors` by key and `covariance`, whose rows are the numbers in `unknowns`, or None where the Jacobian
    does not determine them. KeyboardInterrupt has the result of the best point so far as its argument.

    Raises as `grad` and `evaluate`, and EvaluationError for what is not finite at the start, and for a start outside its bounds.
    """
    outputs, method = parsed(output), method or "L-BFGS-B"
    if bounds and method not in BOUNDED:
        raise ArgumentError(f"{method} takes no bounds; methods that do are {', '.join(BOUNDED)}")
    if method == LEAST_SQUARES and strong_zeros:
        raise ArgumentError(Remedy("strong_zeros", True), " is of gradients, and least_squares takes Jacobians; leave it out")
    given = nested(dict(inputs or {}), document.inputs)
    document = document_of_sizes(document, given)
    unknowns = Unknowns(document, wrt_inputs(document, wrt, outputs))
    lower, upper = unknowns.limits(bounds or {})
    require_given([document.inputs[key] for key in unknowns.types], given)
    start = flat(tuple(value_of_input(key, type_, given[key]) for key, type_ in unknowns.types.items()))
    _require_start(start, lower, upper, unknowns)
    if method in _SQUARE and 8 * unknowns.size**2 > limits().bytes():
        needed = f"{method} holds a matrix of {format_size(8 * unknowns.size**2)} for {unknowns.size:,} unknowns"
        raise LimitError(f"{needed}, more than memory allows; L-BFGS-B, CG and Newton-CG hold vectors")
    make = Residuals if method == LEAST_SQUARES else Loss
    search: Search = make(document, unknowns, given, outputs, (engine, device), strong_zeros, (lower, upper))
    if tolerance is None and (eps := search.eps()) > 1e-10:
        # Below that are roundings. SciPy's own tolerances are for f64.
        tolerance = 10 * eps if method in _BY_COST else eps**0.5
    search.require_finite(start)
    try:
        report = search.run(method, start, tolerance, max_iterations)
    except KeyboardInterrupt as interrupt:
        if interrupt.args:
            _write_trace(search, trace)
        raise
    _write_trace(search, trace)
    return report


def _write_trace(search: Search, trace: str | PurePath | None) -> None:
    if trace is not None:
        rows = "".join(f"{k},{cost!r},{norm!r}\n" for k, (cost, norm) in enumerate(search.trace))
        write_pieces((f"{TRACE}\n{rows}".encode(),), str(trace))


def _require_start(start: NDArray[Any], lower: NDArray[Any], upper: NDArray[Any], unknowns: Unknowns) -> None:
    import numpy as np

    if (wrong := np.flatnonzero(~np.isfinite(start))).size:
        raise EvaluationError(
            f"{unknowns.names()[int(wrong[0])]} starts at {spelled(float(start[wrong[0]]))}; give it a finite number"
        )
    if (outside := np.flatnonzero((start < lower) | (start > upper))).size:
        k = int(outside[0])
        within = f"its bounds {lower[k]:g} and {upper[k]:g}"
        raise EvaluationError(f"{unknowns.names()[k]} starts at {start[k]:g}, outside {within}; start between them")
