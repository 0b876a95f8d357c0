"""Values of more items than are held at once: by chunks of a batch or a matrix, and of a document held open for a stream of them.

Chunks are computed in this process or on other machines, and may be written to a file as they come. To a document held open, values
of inputs come in one after the other, and those of its outputs go out, until the input ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

import msgpack

from tidu_cli.cluster.collecting import blocks_of, spread, write
from tidu_cli.cluster.items import Plan, from_files
from tidu_cli.cluster.run import batch_of
from tidu_cli.errors import DocumentError, TiduError
from tidu_cli.formats.files import is_msgpack_map
from tidu_cli.formats.json import json_text
from tidu_cli.formats.values import read_values, write_values
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.open_sizes import has_open_size
from tidu_cli.graph.sizes.open import are_there_open_sizes
from tidu_cli.graph.types import Type
from tidu_cli.limits import limits, more_than
from tidu_cli.runtime.choosing import Choice
from tidu_cli.runtime.evaluate import call
from tidu_cli.runtime.inputs import value_of_input
from tidu_cli.runtime.memory import check_memory
from tidu_cli.runtime.plans.interpreter import Runnable
from tidu_cli.runtime.sizing import Plans, as_given, document_as_given
from tidu_cli.runtime.trial import prepared_often
from tidu_cli.watching import listening

if TYPE_CHECKING:
    from tidu_cli.transforms.shorthands import Pipeline

Results = tuple[Mapping[Key, Any], Mapping[Key, Type]]
"""Values by key, and their types."""


def values_by_chunks(
    graph: Graph, inputs: Mapping[Key, object], axes: Mapping[Key, int], to: Mapping[str, Any], **how: Any
) -> Results:
    """The values of outputs for all items of a batch, or their sum or mean, and their types.

    `to` says where they are computed and written, as `spread` takes it, and `how` are options of `batch_of`. Values that are
    written as they come are not returned. Raises EvaluationError, DocumentError.
    """
    given = {key: from_files(f"input {key}", value, key in axes) for key, value in inputs.items()}
    batch = batch_of(graph, given, axes, **how)
    return spread(batch, **to), batch.types


def matrix_by_chunks(
    run: Pipeline, inputs: Mapping[Key, object], engine: Callable[[Graph], Choice], to: Mapping[str, Any], **how: Any
) -> Results:
    """The blocks of the matrix that a pipeline derives, and their types, by chunks of its columns or rows.

    `engine` chooses what evaluates a graph; else as `values_by_chunks`. Open sizes are those that the inputs have.
    """
    assert run.linear is not None
    linear, matrix = run.linear, run.document.head
    if are_there_open_sizes():
        matrix, linear = as_given(matrix, inputs), document_as_given(linear, inputs)
    graph = run.stages[-1].transform(linear, **run.stages[-1].options).head
    blocks = blocks_of(graph, matrix, linear.head.inputs, linear.head.outputs)
    if not blocks.units:
        values = blocks.collected((), Plan(0, 1))
        write(values, blocks.types, to["format_"], to["out"])
        return values, blocks.types
    axes = dict.fromkeys(blocks.units, 0)
    batch = batch_of(graph, {**inputs, **blocks.units}, axes, engine=engine(graph), **how)
    values = spread(batch, **to, types=blocks.types, collect=lambda _, parts: blocks.collected(parts, batch.plan), may_stream=False)
    return values, blocks.types


_AT_ONCE = 1 << 20


def answers(
    head: Graph,
    fixed: Mapping[Key, Any],
    items: Iterable[tuple[int, bytes]],
    kind: str,
    engine: Choice,
    tell: Callable[[str], object] = str,
) -> Iterator[bytes]:
    """For each item, which holds values of inputs by key and has a number, the values of the outputs, or {"error": message}.

    The graph is planned once, and the values `fixed` are converted once; an item's own come before them. As in other files of
    values, an item may hold more than is needed. `tell` hears of engines that are tried (see `trial`). Raises EvaluationError,
    before there are items, for a value of `fixed` that does not fit, and for a graph that takes too much memory.
    """

    def planned(sized: Graph) -> tuple[Runnable, dict[Key, Type]]:
        program, _ = prepared_often(sized, engine, tell)
        check_memory(program, None)
        return program, {o.key: o.type for o in program.outputs}

    declared = {i.key: i.type for i in head.inputs}
    known = {key: value for key, value in fixed.items() if key in declared}
    plans = Plans(head, planned)
    always = None if has_open_size(tuple(declared.values())) else planned(head)
    if always:
        known = {key: value_of_input(key, declared[key], value) for key, value in known.items()}
    what = "line" if kind == "json" else "message"

    def answer(number: int, item: bytes) -> bytes:
        try:
            if not item:
                raise DocumentError(_too_long())
            if kind == "msgpack" and not is_msgpack_map(item[:1]):
                raise DocumentError("is not a map of values by key")
            with listening(None):  # an item is short work, and a stream may have millions
                given = {**known, **read_values(item, what, declared)}
                program, types = always or plans.of(given)
                return write_values(call(program, given), kind, types)
        except TiduError as error:
            message = str(error)
        except MemoryError:
            message = "out of memory"
        return _error(f"{what} {number}: {message.removeprefix(f'{what}: ')}", kind)

    return (answer(number, item) for number, item in items)


def _too_long() -> str:
    return more_than("memory", limits().bytes()).replace("more than", "longer than", 1)


def _error(message: str, kind: str) -> bytes:
    if kind == "json":
        return f"{json_text({'error': message})}\n".encode()
    packed: bytes = msgpack.packb({"error": message})
    return packed


def lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines of a file as they come, with their numbers, but for blank ones. One that is longer than memory allows is b""."""
    most, number = limits().bytes(), 0
    while line := file.readline(most):
        number += 1
        if len(line) == most and not line.endswith(b"\n"):
            while (rest := file.readline(_AT_ONCE)) and not rest.endswith(b"\n"):
                pass
            yield number, b""
        elif not line.isspace():
            yield number, line


def messages(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The objects of msgpack in a file as they come, each by its bytes, with their numbers.

    Raises DocumentError for bytes that are not msgpack, after which nobody knows where the next object begins, and for an object
    that is longer than memory allows or breaks off.
    """
    waiting, most = bytearray(), limits().bytes()
    unpacker, start = msgpack.Unpacker(max_buffer_size=0), 0
    number = 1
    while part := file.read1(_AT_ONCE):  # type: ignore[attr-defined]  # which waits for no more than there is
        unpacker.feed(part)
        waiting += part
        while True:
            try:
                unpacker.skip()
            except msgpack.OutOfData:
                break
            except (ValueError, msgpack.UnpackException):
                raise DocumentError(f"message {number}: not msgpack; --stream alone reads lines of JSON") from None
            length = unpacker.tell() - start
            yield number, bytes(waiting[:length])
            del waiting[:length]
            start, number = start + length, number + 1
        if len(waiting) > most:
            raise DocumentError(f"message {number}: {_too_long()}")
    if waiting:
        raise DocumentError(f"message {number}: breaks off after {len(waiting)} bytes")
