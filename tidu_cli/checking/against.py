"""The values of a graph as something else computes them, compared with ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidu_cli.checking.numeric.sampling import draw
from tidu_cli.errors import TiduError
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import INTEGERS, TensorType
from tidu_cli.limits import limited_steps
from tidu_cli.runtime.evaluate import evaluate

if TYPE_CHECKING:
    from numpy.typing import NDArray

VERIFIED = "verified: the file runs exactly what its document says"
"""What is said of a file of another system that claims to be a document: written again, the document gives this file."""

TOLERANCE = {"f64": 1e-10, "f32": 1e-4, "f16": 1e-2, "bf16": 1e-1}
"""Relative to the greatest value of an output; other dtypes must be equal."""


class Agreement(Frozen, slots=False):
    """How far an output is from that of another runtime: the relative error, infinite where shape or type differ."""

    output: Key
    error: float
    tolerance: float
    text: str = ""

    @property
    def ok(self) -> bool:
        """Whether both are the same, as far as rounding goes."""
        return self.error <= self.tolerance


def against_graph(graphs: Sequence[Graph], inputs: Sequence[Key], runs: Graph, seed: int) -> list[Agreement]:
    """Compare the outputs of graphs, one after the other, with those of one that has the inputs of these keys in their order.

    Both were made by other ways, so that digits may differ. Raises TiduError where they are not of the same arrays, and where loops
    run more steps than `limits` allow, by default `DRAWN_STEPS`.
    """
    import numpy as np

    ports = [o for graph in graphs for o in graph.outputs]
    if len(inputs) != len(runs.inputs) or len(ports) != len(runs.outputs):
        raise TiduError("the module has other arguments or results than the document")
    declared = {i.key: i.type for graph in graphs for i in graph.inputs}
    pairs = [*((declared.get(k, i.type), i.type) for k, i in zip(inputs, runs.inputs, strict=True))]
    if any(a != b for a, b in (*pairs, *((o.type, r.type) for o, r in zip(ports, runs.outputs, strict=True)))):
        raise TiduError("the types of arguments or results are others than the document's")
    rng = np.random.default_rng(seed)
    drawn = [draw(rng, t, (0.1, 0.9)) for _, t in pairs if isinstance(t, TensorType)]
    given = dict(zip(inputs, drawn, strict=True))
    with limited_steps(None, drawn=True):
        ours = [y for graph in graphs for y in evaluate(graph, {i.key: given[i.key] for i in graph.inputs}).values()]
        theirs = evaluate(runs, dict(zip((i.key for i in runs.inputs), drawn, strict=True))).values()
    agreements = [agreement(o.key, o.type, np.asarray(a), b) for o, a, b in zip(ports, ours, theirs, strict=True)]
    return [replace(a, tolerance=a.tolerance**0.5) for a in agreements]


def agreement(key: Key, type_: Any, ours: NDArray[Any], theirs: Any) -> Agreement:
    """How far an output of this type is from what another runtime gives."""
    import numpy as np

    assert isinstance(type_, TensorType)
    tolerance = TOLERANCE.get(type_.dtype, 0.0)
    other = np.asarray(theirs)
    if other.shape != ours.shape:
        return Agreement(key, np.inf, tolerance, f"has the shape {list(ours.shape)}, and {list(other.shape)} there")
    if type_.dtype in INTEGERS or type_.dtype == "bool":
        differing = int(np.count_nonzero(ours != other))
        text = f"differs in {differing} of {ours.size} elements"
        return Agreement(key, float(differing), tolerance, text)
    a, b = (np.asarray(x, np.float64) for x in (ours, other))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    scale = float(np.max(np.abs(b), where=np.isfinite(b), initial=0.0))
    with np.errstate(invalid="ignore"):
        error = np.max(np.where(same, 0.0, np.abs(a - b)), initial=0.0)
    relative = float(error / scale) if scale else float(error)
    return Agreement(key, np.inf if np.isnan(relative) else relative, tolerance, f"has relative error {relative:.0e}")
