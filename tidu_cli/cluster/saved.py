"""Results that are kept on disk as they come, beside the file that they are for: a run that broke off goes on from them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tidu_cli import __version__
from tidu_cli.cluster.items import Filed, digest, tensor_at
from tidu_cli.cluster.run import Batch, parts
from tidu_cli.cluster.work import Values
from tidu_cli.custom.packages import announced
from tidu_cli.errors import DocumentError, EvaluationError, TiduError
from tidu_cli.formats.chunks.sinks import Manifest, Sink, kept, require_place
from tidu_cli.formats.chunks.sources import STAMP, stamp
from tidu_cli.graph.closed import cases_within
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import RecordType, TensorType, Type, leaves
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.evaluate import outward
from tidu_cli.runtime.inputs import value_of_input
from tidu_cli.watching import watch


class Saved:
    """The results of a batch by chunks, or its sums by groups of chunks, in the directory `OUT.partial`.

    With `streamed` the output is put together of the chunks, one after the other; else whoever takes `filled` writes it.

    With `resume` what is there is not computed again, but for chunks that are damaged, or that come of input files which have been
    changed since: `again` says why, by how messages call them. Raises EvaluationError where all that is there is of files that have
    been changed since, DocumentError where it is of other work, and where the output can hold no such results.
    """

    def __init__(self, batch: Batch, out: str, *, streamed: bool, resume: bool = False) -> None:
        self.batch = batch
        self.streamed = streamed
        self._arrays = [(o.key, path, t) for o in batch.graph.outputs for path, t in leaves(o.type)]
        arrays = {_name(key, path): (_dtype(t).str, t.shape) for key, path, t in self._arrays}
        if len(arrays) < len(self._arrays):
            raise DocumentError(f"two outputs would be called alike in {out}; choose some of them")
        if streamed:
            require_place(out, arrays)
        size, chunk = (batch.n_groups, 1) if batch.job.reduction else (batch.plan.size, batch.plan.chunk)
        self.sink = Sink.create(out, Manifest(arrays, size, chunk, _identity(batch)), resume=resume)
        self.again: dict[str, str] = {}
        self._stamps: dict[str, bytes] = {}
        self.done = self._usable()

    def _usable(self) -> list[int]:
        done = self.sink.done()
        stale = {k: reason for k in done if (reason := self._change(k))}
        if stale and len(stale) == len(done):
            folder = self.sink.folder
            raise EvaluationError(
                f"{folder}: nothing in it is of use, as {stale[done[0]]}; remove {folder}, or choose another output"
            )
        for k in stale:
            self.sink.discard(k)
        reasons = {**dict.fromkeys(self.sink.damaged, "what there was is damaged"), **stale}
        self.again = {self.batch.part_name(k): reasons[k] for k in sorted(reasons)}
        return [k for k in done if k not in stale]

    def _files(self, k: int) -> Iterator[tuple[Key, str]]:
        """The files that chunk k comes of, and the inputs which they are of."""
        start, stop = self.batch.part_range(k)
        for key, items in self.batch.items.items():
            for file in items.files(start, stop) if isinstance(items, Filed) else ():
                yield key, file

    def _change(self, k: int) -> str:
        """Which file of an input is not what it was when chunk k was done."""
        was = self.sink.stamp(k)
        for n, (key, file) in enumerate(self._files(k)):
            if was[n * STAMP : (n + 1) * STAMP] != self._stamp(file):
                return f"{file}, of input {key}, has been changed since"
        return ""

    def _stamp(self, file: str) -> bytes:
        if file not in self._stamps:
            self._stamps[file] = stamp(file)
        return self._stamps[file]

    def fill(self, client: Any) -> None:
        """Compute what is not there. Raises EvaluationError, and DocumentError where the disk is full."""
        todo = sorted(set(range(len(self.sink.manifest))) - set(self.done))
        # Before any is read: one that is changed while its chunks are computed is another one than they say.
        stamps = {k: b"".join(self._stamp(file) for _, file in self._files(k)) for k in todo}
        for k, values in parts(self.batch, client, todo):
            arrays = {_name(key, path): self._stored(values, key, path, t) for key, path, t in self._arrays}
            self.sink.write(k, arrays, stamps.pop(k))

    def _stored(self, values: Values, key: Any, path: Any, type_: TensorType) -> Any:
        import numpy as np

        array = np.asarray(tensor_at(values[key], path)).view(_dtype(type_))
        return array[None] if self.batch.job.reduction else array

    def filled(self, client: Any) -> Iterator[tuple[int, Values]]:
        """Compute what is not there, and give the values of all chunks, or the sums of all groups. Raises as `fill`."""
        self.fill(client)
        for k in range(len(self.sink.manifest)):
            yield k, {o.key: self._value(k, str(o.key), o.type) for o in self.batch.graph.outputs}

    def _value(self, k: int, name: str, type_: Type) -> Any:
        if isinstance(type_, RecordType):
            fields = {field: self._value(k, f"{name}.{field}", t) for field, t in type_.fields}
            return tuple(fields.values()) if type_.is_tuple else fields
        import numpy as np

        array = np.array(self.sink.part(k, name))
        if type_.dtype == "bf16":
            array = array.view(numpy_dtype(np, type_.dtype))
        return array.reshape(array.shape[1:]) if self.batch.job.reduction else array

    def is_begun(self) -> bool:
        """Whether some of it is done, and the output not yet written."""
        return not self.sink.is_empty()

    @contextmanager
    def open(self) -> Iterator[None]:
        """Within the block all is computed and, unless it is streamed, written: the chunks are not needed any more after it.

        What goes wrong says how to go on. Where nothing is done yet, nothing stays. Raises EvaluationError, DocumentError.
        """
        with self.sink.held():
            try:
                yield
                if self.streamed:
                    watch("writing")
                    self.sink.finish()
                else:
                    self.sink.remove()
            except BaseException as error:
                if not self.is_begun():
                    self.sink.remove()
                elif isinstance(error, KeyboardInterrupt):
                    error.args = (kept(),)
                elif isinstance(error, TiduError) and kept() not in str(error):
                    raise EvaluationError(f"{error}; {kept()}") from error
                raise


def _name(key: Any, path: Any) -> str:
    return ".".join([str(key), *path])


def _dtype(type_: TensorType) -> Any:
    """What an array of a type is in files: .npy has no name for bf16, and whoever reads it knows the type."""
    import numpy as np

    dtype = outward(type_, np.zeros((), numpy_dtype(np, type_.dtype))).dtype
    return np.dtype("V2") if dtype.name == "bfloat16" else dtype


def _ops(batch: Batch) -> set[str]:
    return {case.op for case in cases_within(batch.graph.cases.cases)} - BUILTIN.primitives.keys()


def _identity(batch: Batch) -> dict[str, str]:
    """All that results depend on, by what messages call it."""
    job, types = batch.job, {i.key: i.type for i in batch.graph.inputs}
    return {
        "version of tidu": __version__,
        "document": job.document,
        **{
            f"package of op '{op}'": ", ".join(map(str, announced()[op].packages))
            for op in sorted(_ops(batch) & announced().keys())
        },
        "number of items": str(batch.plan.size),
        "size of chunks": str(batch.plan.chunk),
        "reduction": job.reduction or "none",
        "engine": " ".join(filter(None, (job.engine.name, job.engine.device))),
        **{f"input {key}": items.identity() for key, items in batch.items.items()},
        **{f"input {key}": digest(value_of_input(key, types[key], value)) for key, value in job.shared.items()},
    }
