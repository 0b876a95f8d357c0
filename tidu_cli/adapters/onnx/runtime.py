"""The values of a model as onnxruntime computes them, compared with ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from tidu_cli.checking.against import Agreement, agreement
from tidu_cli.checking.numeric.sampling import draw
from tidu_cli.errors import TiduError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType
from tidu_cli.limits import limited_steps
from tidu_cli.runtime.evaluate import evaluate

if TYPE_CHECKING:
    from numpy.typing import NDArray

_INTERVAL = (-1.0, 1.0)  # of which integers are 0: indices that any table has


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

    Where sizes are open, at two of them: of each output what agrees less. `model` is its bytes or path, `names` are the keys of its
    inputs and outputs, `fixed` values of inputs that the document has as constants. Raises TiduError for what the runtime does not
    run.
    """
    from tidu_cli.checking.sizes import at_sizes

    runtime = _package()
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # of many classes, which have none in common
        raise _refused(error) from None
    every = [_agreements(sized, session, names, given, fixed, seed) for _, sized in at_sizes(document, given)]
    return [max(of_sizes, key=lambda a: a.error) for of_sizes in zip(*every, strict=True)]


def _agreements(
    document: Document,
    session: Any,
    names: Mapping[str, Key],
    given: Mapping[Key, NDArray[Any]],
    fixed: Mapping[str, NDArray[Any]],
    seed: int,
) -> list[Agreement]:
    import numpy as np

    rng = np.random.default_rng(seed)
    values = {
        i.key: given[i.key] if i.key in given else draw(rng, cast(TensorType, i.type), _INTERVAL) for i in document.head.inputs
    }
    with limited_steps(None, drawn=True):
        ours = evaluate(document.head, values)
    try:
        fed = {i.name: fixed[i.name] if i.name in fixed else values[names[i.name]] for i in session.get_inputs()}
        theirs = {names[o.name]: y for o, y in zip(session.get_outputs(), session.run(None, fed), strict=True)}
    except Exception as error:  # likewise
        raise _refused(error) from None
    return [agreement(o.key, o.type, np.asarray(ours[o.key]), theirs[o.key]) for o in document.head.outputs]


def _refused(error: Exception) -> TiduError:
    return TiduError(f"onnxruntime {version()} does not run the model: {' '.join(str(error).split())}")


def _package() -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise TiduError("--against onnxruntime needs that package: pip install onnxruntime") from None
    return onnxruntime
