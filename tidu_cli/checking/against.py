"""The values of a model as another runtime computes them, compared with ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidu_cli.checking.numeric.sampling import draw
from tidu_cli.errors import TiduError
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import INTEGERS, TensorType
from tidu_cli.limits import limited_steps
from tidu_cli.runtime.evaluate import evaluate

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOLERANCE = {"f64": 1e-10, "f32": 1e-4, "f16": 1e-2, "bf16": 1e-1}
"""Relative to the greatest value of an output; other dtypes must be equal."""

_INTERVAL = (-1.0, 1.0)  # of which integers are 0: indices that any table has


@dataclass(frozen=True)
class Agreement:
    """How far an output is from that of another runtime: the relative error, infinite where shape or type differ."""

    output: Key
    error: float
    tolerance: float
    text: str = ""

    @property
    def ok(self) -> bool:
        """Whether both are the same, as far as rounding goes."""
        return self.error <= self.tolerance


def version() -> str:
    """The version of onnxruntime. Raises TiduError, which says what to install, where it is missing."""
    return str(_package().__version__)


def against_onnxruntime(
    document: Document,
    model: bytes | str,
    names: Mapping[str, Key],
    given: Mapping[Key, NDArray[Any]],
    fixed: Mapping[str, NDArray[Any]],
    seed: int,
) -> list[Agreement]:
    """Compare the outputs of a model's document with those of onnxruntime, at the inputs given and random others.

    `model` is its bytes or path, `names` are the keys of its inputs and outputs, `fixed` values of inputs that the document has as
    constants. Raises TiduError for what the runtime does not run.
    """
    import numpy as np

    runtime = _package()
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    rng = np.random.default_rng(seed)
    values = {i.key: given[i.key] if i.key in given else _drawn(rng, i.type) for i in document.head.inputs}
    with limited_steps(None, drawn=True):
        ours = evaluate(document.head, values)
    try:
        session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        fed = {i.name: fixed[i.name] if i.name in fixed else values[names[i.name]] for i in session.get_inputs()}
        theirs = {names[o.name]: y for o, y in zip(session.get_outputs(), session.run(None, fed), strict=True)}
    except Exception as error:  # of many classes, which have none in common
        raise TiduError(f"onnxruntime {runtime.__version__} does not run the model: {' '.join(str(error).split())}") from None
    return [_agreement(o.key, o.type, np.asarray(ours[o.key]), theirs[o.key]) for o in document.head.outputs]


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
    found = [_agreement(o.key, o.type, np.asarray(a), b) for o, a, b in zip(ports, ours, theirs, strict=True)]
    return [replace(a, tolerance=a.tolerance**0.5) for a in found]


def _package() -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise TiduError("--against onnxruntime needs that package: pip install onnxruntime") from None
    return onnxruntime


def _drawn(rng: Any, type_: Any) -> NDArray[Any]:
    return draw(rng, type_, _INTERVAL)


def _agreement(key: Key, type_: Any, ours: NDArray[Any], theirs: Any) -> Agreement:
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
