"""Models of ONNX as documents: those that tidu wrote as they were, others by tracing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tidu_cli.adapters.onnx.choices import Choices
from tidu_cli.adapters.onnx.loading import loaded
from tidu_cli.errors import DocumentError, LimitError, TiduError
from tidu_cli.formats.files import one_line
from tidu_cli.frozen import replace
from tidu_cli.port_data import FromPlain, Imported

CHANGED = "it is not what is written of the document that it claims to be, so it is read by what it runs, without roles and passes"


def read_onnx(
    data: bytes, where: str, path: str | None = None, choices: Choices | None = None, from_plain: FromPlain | None = None
) -> Imported:
    """The document of a model. `path` is its file, beside which external data lies.

    With `from_plain` a model that tidu wrote is the document that it was, unless there are choices. Raises DocumentError, one line
    that begins with `where` and names graph, node and operator; LimitError.
    """
    from tidu_cli.adapters.onnx.own import claims

    with _errors_of(where):
        model = loaded(data, path)
        if from_plain is None or choices not in (None, Choices()) or not claims(model):
            return _traced(model, choices or Choices())
        if own := _own(model, from_plain):
            return own
        plain = _traced(model, Choices())
        return replace(plain, notes=(*plain.notes, CHANGED), claim="changed")


def _traced(model: Any, choices: Choices) -> Imported:
    from tidu_cli.adapters.onnx.reading.importer import import_model

    return import_model(model, choices)


def opened(data: bytes, where: str, path: str | None = None) -> Any:
    """The ModelProto of a model. Raises as `read_onnx` does."""
    with _errors_of(where):
        return loaded(data, None if path == "-" else path)


@contextmanager
def _errors_of(where: str) -> Iterator[None]:
    try:
        yield
    except TiduError as error:
        kind = type(error) if isinstance(error, LimitError) else DocumentError
        raise kind(one_line(f"{where}: {error}")) from error


def _own(model: Any, from_plain: FromPlain) -> Imported | None:
    from tidu_cli.adapters.onnx.own import claimed, is_written

    plain = claimed(model)
    if plain is None:
        return None
    try:
        document = from_plain(plain)
    except TiduError:
        return None
    opset = next((o.version for o in model.opset_import if not o.domain), 0)
    return Imported(document, {}, claim="verified") if is_written(document, model, opset) else None
