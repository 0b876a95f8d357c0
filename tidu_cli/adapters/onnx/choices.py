"""What is chosen of a model when it is read: sizes, weights, floats where it is cut, and where derivatives stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidu_cli.errors import ArgumentError, KeyTextError, Remedy
from tidu_cli.frozen import Frozen, field
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.types import FLOATS, TensorType, parse_type


class Choices(Frozen, slots=False):
    """`sizes` of symbolic dimensions by name, `types` of inputs by name, and `values` of inputs that are constants by name.

    With `weights` the initializers of floats are inputs. `cast` is the dtype for all floats, None for their own. `cuts` are
    names of values that become inputs, `stops` of those through which no derivative goes. With `straight_through` rounding has the
    derivative 1, with `statistics` new values of weights that a model updates are outputs.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    types: Mapping[str, TensorType] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    weights: bool = False
    cast: str | None = None
    cuts: tuple[str, ...] = ()
    straight_through: bool = False
    stops: tuple[str, ...] = ()
    statistics: bool = False

    @classmethod
    def of(
        cls,
        dims: Mapping[str, int] | None = None,
        input_types: Mapping[str, str | TensorType] | None = None,
        set: Mapping[str, Any] | None = None,
        weights: bool = False,
        cast: str | None = None,
        cut: str | Sequence[str] = (),
        straight_through: bool = False,
        stop: str | Sequence[str] = (),
        statistics: bool = False,
    ) -> Choices:
        """What the options say. Raises TypeTextError, and ArgumentError for a dtype that is none of floats."""
        if cast is not None and cast not in FLOATS:
            raise ArgumentError(f"argument 'cast' takes a dtype of floats ({', '.join(sorted(FLOATS))}), not {cast!r}")
        if statistics and not weights:
            raise ArgumentError(Remedy("statistics", True), " goes with ", Remedy("weights", "FILE.npz", python="weights=True"))
        types = {name: parse_type(t) if isinstance(t, str) else t for name, t in (input_types or {}).items()}
        cuts, stops = ((names,) if isinstance(names, str) else tuple(names) for names in (cut, stop))
        return cls(
            dict(dims or {}), types, dict(set or {}), bool(weights), cast, cuts, bool(straight_through), stops, bool(statistics)
        )


def as_key(name: str) -> Key:
    """The key of a name: that of which it is the text, else of this name."""
    try:
        return parse_key(name)
    except KeyTextError:
        return Key(name)
