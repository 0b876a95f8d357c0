"""Weights that a model updates itself, as batch norms in training mode do with their statistics: outputs by the same names."""

from __future__ import annotations

from typing import Any

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.recorder import Recorder
from tidu_cli.errors import Remedy
from tidu_cli.graph.select import listed


class Statistics:
    """The new values of weights, as nodes tell of them."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._new: dict[int, list[Array]] = {}

    def update(self, old: Any, new: Any) -> None:
        """Know that a node makes a new value of an old one, which may be a weight, or a new value of one."""
        if not (isinstance(old, Array) and isinstance(new, Array)) or any(x.recorder is not self._recorder for x in (old, new)):
            return
        for values in self._new.values():
            if any(x.value == old.value for x in values):
                values[:] = [new if x.value == old.value else x for x in values]
                return
        if old.value < len(self._recorder.inputs):
            self._new.setdefault(old.value, []).append(new)

    def outputs(self, weights: Any, results: dict[str, Any], wanted: bool) -> tuple[dict[str, Any], str]:
        """The outputs, with new values of weights among them by their names if they are wanted, and a note."""
        new = {key: values for k, values in self._new.items() if (key := str(self._recorder.inputs[k].key)) in weights}
        once = {key: values[0] for key, values in new.items() if len(values) == 1}
        flag = Remedy("statistics", True)
        if not wanted:
            return results, f"it updates {listed([*new])}; {flag} makes outputs of their new values" if new else ""
        if not once:
            return results, f"{flag} changes nothing: {'one weight is that of several nodes' if new else 'it updates no weights'}"
        names = {x.value: key for key, x in once.items()}
        renamed = {names.pop(x.value, name): x for name, x in results.items()}
        shared = [key for key in new if key not in once]
        told = f"several nodes update {listed(shared)}, which is therefore not an output; export each with a value of its own"
        return renamed | {key: once[key] for key in names.values()}, told if shared else ""
