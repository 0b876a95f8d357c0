"""Results in arrays of the caller's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidu_cli.errors import EvaluationError, UnknownNameError, did_you_mean
from tidu_cli.graph.graph import Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import listed
from tidu_cli.graph.types import DATETIMES, RecordType, storage_dtype, unit_of
from tidu_cli.lax.arrays.structural import numpy_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray


def require_room(outputs: Sequence[Output], room: Mapping[Key, NDArray[Any]]) -> None:
    """Raises UnknownNameError if some key is of no output, and EvaluationError if an array cannot hold what is to go there."""
    import numpy as np

    types = {o.key: o.type for o in outputs}
    for key, array in room.items():
        if key not in types:
            known = list(map(str, types))
            raise UnknownNameError(f"no output '{key}'{did_you_mean(str(key), known)} (outputs: {listed(known)})")
        type_ = types[key]
        if isinstance(type_, RecordType):
            raise EvaluationError(f"output {key}: {type_} is a record, which no array holds; take it from the result")
        dtype = f"M8[{unit_of(type_.dtype)}]" if type_.dtype in DATETIMES else numpy_dtype(np, storage_dtype(type_.dtype))
        if not isinstance(array, np.ndarray) or array.dtype != np.dtype(dtype) or array.shape != type_.shape:
            given = f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else type(array).__name__
            raise EvaluationError(f"output {key}: its array must be of {np.dtype(dtype)}{list(type_.shape)}, got {given}")
        if not array.flags.writeable:
            raise EvaluationError(f"output {key}: its array is read-only; give one that can be written to")


def write_into(room: Mapping[Key, NDArray[Any]], results: Mapping[Key, Any]) -> dict[Key, Any]:
    """The results, those with an array of `room` written into it."""
    found = dict(results)
    for key, array in room.items():
        array[...] = found[key]
        found[key] = array
    return found
