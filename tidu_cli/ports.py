"""The ports: what an adapter is to the rest of tidu. `tidu_cli.installed` finds those that there are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from tidu_cli.graph.graph import Document, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.port_data import Asked, Data, FromPlain, Given, Imported, Option, Remarks, Worker, Written


class Readable(Protocol):
    """Bytes to be read. `path` is that of their file, None if they come from elsewhere."""

    path: str | None

    def head(self, n: int) -> bytes:
        """The next `n` bytes, or all if there are fewer. They are still to be read."""

    def read(self, n: int = -1) -> bytes:
        """The next `n` bytes, or all."""


class Format(Protocol):
    """A kind of file that holds a document. `title` is what it is called in messages, `subject` a file of it."""

    name: str
    title: str
    subject: str
    suffixes: tuple[str, ...]
    binary: bool
    reading: tuple[Option, ...]
    writing: tuple[Option, ...]
    runtimes: tuple[str, ...]
    """Other programs that run such files, with which `check` compares values."""

    def sniff(self, source: Readable) -> bool:
        """Whether the bytes, none of which JSON or msgpack begins with, are of this format: by the head alone."""

    def read(self, source: Readable, where: str, options: Mapping[str, Any], from_plain: FromPlain | None) -> Imported:
        """The document; as it claims to be with `from_plain`, else by what the file runs.

        Raises DocumentError, one line that begins with `where`; LimitError.
        """

    def write(self, document: Document, beside: str | None, options: Mapping[str, Any]) -> Written:
        """The file of a document. `beside` is the name that a second file would have, None where there can be none.

        Raises TiduError before the first piece for what cannot be written.
        """

    def double(self, options: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Options to read the same file in double precision, where derivatives are tried; None to try them as it is."""

    def remarks(self, source: Readable, where: str, imported: Imported, options: Mapping[str, Any], asked: Asked) -> Remarks:
        """What `check` says of the file besides what it says of every document. Raises TiduError."""

    def outline(self, data: bytes) -> dict[str, Any]:
        """The plain data of a document with the keys and types of this file, read quickly: for completion. Raises TiduError."""


class Engine(Protocol):
    """A way to run graphs. It gives what the plain interpreter gives, but for the roundings that docs/howto/engines.md states."""

    name: str
    package: str
    extra: str
    devices: bool
    """Whether it has devices besides the processor."""

    def seconds(self, n_nodes: int, n_calls: int, n_numbers: int, runs: int, call: float) -> float:
        """An estimate of the seconds for `runs` runs, compilation included.

        The graph has `n_nodes` nodes; a run makes `n_calls` operations, `n_numbers` of them on single numbers. `call` is the time
        of an operation on arrays in NumPy.
        """

    def refusal(self, graph: Graph, primitives: Any) -> str | None:
        """Why it cannot run a self-contained graph: its first node that it cannot, in one line. Looks at cases alone."""

    def program(self, graph: Graph, primitives: Any, outputs: Sequence[int] | None, device: str | None) -> Any:
        """The graph made ready, to compute these outputs (indices; None for all): a `Runnable`. Raises EvaluationError.

        `device` is what the user asked for, None for the engine's choice.
        """

    def batch(self, graph: Graph, keys: Collection[Key], size: int, max_memory: int | None = None) -> Any:
        """A run over `size` items of the inputs `keys` at once; None if the graph is to be vectorized, and run as any other.

        Raises EvaluationError if one item would take more than `max_memory` bytes; None means what `limits` say.
        """


class Source(Protocol):
    """A way to write graphs other than documents: formulas, functions in files of Python."""

    def names(self, text: str) -> Collection[str] | None:
        """The names that the text has for inputs, without running any of it; None if any may be one. Raises OSError."""

    def functions(self, file: str) -> Mapping[str, str]:
        """The functions that a file has, with what is said of them; none for a source without files. Raises OSError."""

    def build(
        self, text: str, given: Mapping[str, Given], *, data: Data | None, name: str | None, outputs: Sequence[str], **how: Any
    ) -> Document:
        """The document of a text, with what is given of its arguments by name, and data that say the types of others.

        Raises TiduError.
        """

    def written(self, document: Document) -> str:
        """The head as a text of this source. Raises TiduError for what it has no text for."""

    def notes(self, document: Document) -> Sequence[str]:
        """What whoever wrote the text should know of what was built."""


class Scheduler(Protocol):
    """Machines over which batches are spread. A client stands for the connection to them."""

    def connected(self, scheduler: Any, *, quiet: bool = False) -> AbstractContextManager[Any]:
        """A client of what users name, text or a client. Where `quiet`, its library logs nothing. Raises EvaluationError."""

    def described(self, client: Any) -> str:
        """Where a client's scheduler is, and how many threads it has."""

    def n_threads(self, client: Any) -> int:
        """How many threads there are."""

    def kept(self, client: Any, parcel: Any, job: Any) -> AbstractContextManager[None]:
        """Within the block each worker keeps what all tasks need, and new workers get it."""

    def window(self, client: Any, name: str, width: Callable[[], int], told: Callable[[int], str]) -> Any:
        """What runs tasks, of which `width` are under way at once: `run` of it gives results by number as they come."""

    def lazily(self, graph: Graph, given: Mapping[Key, Any], axes: Mapping[Key, int], **how: Any) -> Mapping[Key, Any]:
        """The results of a batch whose inputs are the scheduler's own arrays, which are computed when someone asks for them."""

    def worker(self) -> Worker | None:
        """The worker that runs this task; None where none does. Imports nothing."""

    def is_lazy(self, value: object) -> bool:
        """Whether a value is one of the scheduler's own arrays."""
