"""Updates of elements at computed places: which, is told by the region."""

from __future__ import annotations

from tidu_cli.adapters.stablehlo.reading.operations.indexing import with_index_axis
from tidu_cli.adapters.stablehlo.reading.operations.reductions import region_of
from tidu_cli.adapters.stablehlo.reading.reducers import reducer
from tidu_cli.adapters.stablehlo.reading.site import Reader, RefusedError, Site
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.rules.terms import Term

UPDATES = {"sum": "scatter-add", "prod": "scatter-mul", "max": "scatter-max", "min": "scatter-min"}


def _scatter(site: Site, *operands: Term) -> Term:
    """Windows that are not wholly within the operand are left out, as StableHLO says."""
    if len(operands) != 3:
        raise RefusedError("updates several arrays at once; one is read")
    x, indices, updates = operands
    numbers = site.attribute("scatter_dimension_numbers")
    graph = region_of(site, 0, "update")
    op = "scatter" if _takes_update(graph) else UPDATES.get(reducer(graph) or "")
    if op is None:
        raise RefusedError("its update is none of replacement, sum, product, maximum and minimum")
    indices, axis = with_index_axis(site, indices, numbers["index_vector_dim"])
    return site.emit(
        op,
        x,
        indices,
        updates,
        dimension_numbers={
            "update_window_dims": tuple(numbers["update_window_dims"]),
            "inserted_window_dims": tuple(numbers["inserted_window_dims"]),
            "scatter_dims_to_operand_dims": tuple(numbers["scattered_dims_to_operand_dims"]),
            "operand_batching_dims": tuple(numbers["input_batching_dims"]),
            "scatter_indices_batching_dims": tuple(a - (a > axis) for a in numbers["scatter_indices_batching_dims"]),
        },
        mode="fill",
        **({"unique_indices": site.attribute("unique_indices", False)} if op in ("scatter", "scatter-mul") else {}),
    )


def _takes_update(graph: ClosedGraph) -> bool:
    """Whether the result of a region is its second argument."""
    return len(graph.input_types) == 2 and [o.value for o in graph.graph.outputs] == [1]


OPERATIONS: dict[str, Reader] = {"stablehlo.scatter": _scatter}
