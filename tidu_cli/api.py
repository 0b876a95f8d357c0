"""tidu in Python: what the commands do, on documents in memory. Names and order of arguments are the commands'.

Keys are text, such as "x" or "y@-1", or `Key`s. `docs/build.md` shows an example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from tidu_cli.documents.files import read_bytes, write_bytes
from tidu_cli.documents.read import parse_document
from tidu_cli.documents.write import format_document
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.render.dot import to_dot
from tidu_cli.transforms import linearize as _linearize
from tidu_cli.transforms import materialize as _materialize
from tidu_cli.transforms import resolve as _resolve
from tidu_cli.transforms import transpose as _transpose

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["evaluate", "linearize", "load", "materialize", "resolve", "save", "to_dot", "trace", "transpose"]

KeyText = str | Key
"""A key, or its text form."""


def load(file: str | PurePath) -> Document:
    """Read and check a document, JSON or msgpack. Raises DocumentError."""
    return parse_document(read_bytes(str(file)), str(file))[0]


def save(document: Document, file: str | PurePath) -> None:
    """Write a document, as msgpack if the file's suffix is .msgpack, else as JSON. Raises DocumentError."""
    chosen = "msgpack" if PurePath(file).suffix.lower() == ".msgpack" else "json"
    write_bytes(format_document(document, chosen), str(file))


def resolve(*documents: Document, bind: Mapping[str, str] | Sequence[tuple[KeyText, KeyText]] = ()) -> Document:
    """Link documents into one; `bind` maps inputs to the outputs that they are. Raises TransformError."""
    pairs = list(bind.items()) if isinstance(bind, Mapping) else bind
    return _resolve.resolve(documents, bind=[(_key(i), _key(o)) for i, o in pairs])


def linearize(
    document: Document,
    wrt: KeyText | Sequence[KeyText],
    output: KeyText | Sequence[KeyText] = (),
    pass_number: int | None = None,
) -> Document:
    """Append the JVP of the head's outputs (or of `output`) along the inputs `wrt`. Raises UnknownNameError, TransformError."""
    return _linearize.linearize(document, _keys(wrt), outputs=_keys(output), pass_number=pass_number)


def transpose(document: Document) -> Document:
    """Replace the linear head by its transpose. Raises TransformError."""
    return _transpose.transpose(document)


def materialize(document: Document, output: KeyText | Sequence[KeyText] = ()) -> Document:
    """One self-contained graph with the head's outputs (or `output`). Raises UnknownNameError, TransformError."""
    return _materialize.materialize(document, outputs=_keys(output))


def evaluate(
    document: Document, inputs: Mapping[Any, object] | None = None, output: KeyText | Sequence[KeyText] = (), **more: object
) -> dict[str, NDArray[Any]]:
    """The values of the head's outputs (or of `output`), by the text of their keys. Raises EvaluationError.

    Inputs are arrays, numbers or nested lists, by key; those whose keys are names may be given as keyword arguments.
    """
    from tidu_cli.runtime.evaluate import evaluate as run

    given = {_key(k): v for k, v in {**(inputs or {}), **more}.items()}
    return {str(key): value for key, value in run(materialize(document, output).head, given).items()}


def trace(function: Callable[..., Any], *args: Any, name: str | None = None, output: str = "y", **inputs: Any) -> Document:
    """The graph of a NumPy function of inputs of these types: text, TensorTypes or arrays, also nested. Raises BuildError."""
    from tidu_cli.build.tracing import trace as traced

    return traced(function, *args, name=name, output=output, **inputs)


def _key(key: KeyText) -> Key:
    return key if isinstance(key, Key) else parse_key(key)


def _keys(keys: KeyText | Sequence[KeyText]) -> list[Key]:
    return [_key(k) for k in ([keys] if isinstance(keys, str | Key) else keys)]
