"""Models of ONNX as documents: those that tidu wrote as they were, others by tracing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tidu_cli.errors import DocumentError, LimitError, TiduError
from tidu_cli.formats.messages import one_line
from tidu_cli.formats.onnx.choices import Choices, Imported
from tidu_cli.formats.onnx.loading import loaded


def read_onnx(data: bytes, where: str, path: str | None = None, choices: Choices | None = None) -> Imported:
    """The document of a model. `path` is its file, beside which external data lies.

    Raises DocumentError, one line that begins with `where` and names graph, node and operator.
    """
    from tidu_cli.formats.onnx.reading.importer import import_model

    with _errors_of(where):
        return import_model(loaded(data, path), choices or Choices())


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
