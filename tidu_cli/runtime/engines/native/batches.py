"""Many items of a batch: blocks of them go through the instructions together, or one after the other, on all cores.

Each thread has registers of its own. What is computed of an item does not depend on the others, nor on how items fall into blocks.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.runtime.engines.contract import Run
from tidu_cli.runtime.engines.native.compiling import machine
from tidu_cli.runtime.engines.native.layout import Entry, Place, Words
from tidu_cli.runtime.engines.native.machine import FUEL, JUMP_BACK, LANES, TABLE, for_many
from tidu_cli.runtime.engines.native.program import FUEL_EACH, NativeProgram

CACHE_BYTES = 2**20
"""What registers should take, where they can."""

FEWEST_LANES, MOST_LANES = 32, 128
"""With fewer items in a block, what Python does for each block counts; more gain nothing."""

MOST_BYTES = 2**27
"""What the registers of all threads should take at most. Where there are so many words that few items fit, each goes alone."""


def batched(program: NativeProgram, keys: Collection[Key], size: int) -> Run | None:
    """The run of a program over up to `size` items of the inputs `keys`; None if it needs more than the machine."""
    ends = [(i.type, p) for i, p in zip(program.inputs, program.input_places, strict=True)]
    ends += [(o.type, p) for o, p in zip(program.outputs, program.output_places, strict=True) if p is not None]
    if program.layout.escapes or any(isinstance(p, Entry) for _, p in ends):
        return None
    return _Batch(program, keys, size).run


class _Batch:
    """The threads and registers that a batch runs on."""

    def __init__(self, program: NativeProgram, keys: Collection[Key], size: int) -> None:
        self.program, self.keys = program, set(keys)
        self.threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.width = self._width(8 * program.layout.n_words, size)
        self.machine = machine("run_many" if self.width > 1 else "run", program.code)

    def _width(self, bytes_each: int, size: int) -> int:
        """How many items go together; where they may part ways, each goes its own."""
        if not self.program.layout.uniform or not _all_for_many(self.program.code):
            return 1
        worthwhile = min(max(CACHE_BYTES // bytes_each, FEWEST_LANES), MOST_LANES)
        share = size if bytes_each < CACHE_BYTES else -(-size // self.threads)  # of a long program, whose runs take milliseconds
        lanes = min(worthwhile, MOST_BYTES // (bytes_each * self.threads), share + LANES - 1) // LANES * LANES
        return max(lanes, 1)

    def run(self, inputs: Mapping[Key, Any]) -> list[Any]:
        """The values of the outputs for each item."""
        size = max([len(inputs[i.key]) for i in self.program.inputs if i.key in self.keys], default=1)
        found = [_room(o.type, size) for o in self.program.outputs]
        per_task = self.width * max(1, -(-size // (self.width * self.threads * 4)))
        begins = range(0, size, per_task)

        def task(begin: int) -> None:
            words = self._registers(inputs)
            for first in range(begin, min(begin + per_task, size), self.width):
                self._block(words, inputs, found, first, min(first + self.width, size))

        if len(begins) == 1:
            task(0)
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(task, begins))
        return found

    def _registers(self, inputs: Mapping[Key, Any]) -> NDArray[Any]:
        """Registers with what is the same for all items."""
        words = np.zeros((self.program.layout.n_words, self.width), np.int64)
        for type_, constant, value in self.program.layout.constants:
            _put(words, type_, constant, np.asarray(value)[None], self.width)
        for i, place in zip(self.program.inputs, self.program.input_places, strict=True):
            if i.key not in self.keys:
                _put(words, i.type, _words(place), np.asarray(inputs[i.key])[None], self.width)
        return words

    def _block(self, words: NDArray[Any], inputs: Mapping[Key, Any], found: list[Any], begin: int, end: int) -> None:
        program = self.program
        for i, given in zip(program.inputs, program.input_places, strict=True):
            if i.key in self.keys:
                _put(words, i.type, _words(given), inputs[i.key][begin:end], end - begin)
        words[FUEL] = FUEL_EACH
        at = 0
        while program.code[at := self.machine(program.code.ctypes.data, at, words.ctypes.data, self.width), 0] == JUMP_BACK:
            words[FUEL] = FUEL_EACH
        for o, place, array in zip(program.outputs, program.output_places, found, strict=True):
            if place is not None:
                array[begin:end] = _get(words, o.type, _words(place), end - begin)


def _all_for_many(code: NDArray[Any]) -> bool:
    missing = [number for number, signature in enumerate(TABLE) if not for_many(signature)]
    return not np.isin(code[:, 0], missing).any()


def _words(place: Place | None) -> Words:
    assert place is not None and not isinstance(place, Entry)
    return place


def _room(type_: Type, size: int) -> NDArray[Any]:
    assert isinstance(type_, TensorType)
    return np.zeros((size, *type_.shape), numpy_dtype(np, type_.dtype))


def _numbers(words: NDArray[Any], dtype: str) -> NDArray[Any]:
    """The registers as numbers of a dtype, by word and item."""
    if dtype == "bool":
        return words
    view = words.view("f8" if dtype == "c128" else numpy_dtype(np, dtype))
    return view[:, :: view.shape[1] // words.shape[1]]


def _put(words: NDArray[Any], type_: Type, place: Words, values: NDArray[Any], n: int) -> None:
    assert isinstance(type_, TensorType)
    numbers, at = _numbers(words, type_.dtype), place.reshape(-1)
    columns = np.reshape(values, (len(values), -1)).T
    if type_.dtype == "c128":
        numbers[at, :n], numbers[at + 1, :n] = columns.real, columns.imag
    else:
        numbers[at, :n] = columns


def _get(words: NDArray[Any], type_: Type, place: Words, n: int) -> NDArray[Any]:
    assert isinstance(type_, TensorType)
    numbers, at = _numbers(words, type_.dtype), place.reshape(-1)
    columns = numbers[at, :n]
    if type_.dtype == "bool":
        columns = columns & 1 != 0
    elif type_.dtype == "c128":
        columns = columns + 0j
        columns.imag = numbers[at + 1, :n]
    return columns.T.reshape(n, *place.shape)
