"""What is chosen of a model when it is read: sizes, weights, floats where it is cut, and where derivatives stop."""

from __future__ import annotations

from collections.abc import Mapping
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
    def of(cls, **options: Any) -> Choices:
        """What the options of `load_onnx` say. Raises TypeTextError, and ArgumentError for a dtype that is none of floats."""
        cast, flags = options.get("cast"), {name: bool(options.get(name)) for name in ("weights", "straight_through", "statistics")}
        if cast is not None and cast not in FLOATS:
            raise ArgumentError(f"argument 'cast' takes a dtype of floats ({', '.join(sorted(FLOATS))}), not {cast!r}")
        if flags["statistics"] and not flags["weights"]:
            raise ArgumentError(Remedy("statistics", True), " goes with ", Remedy("weights", "FILE.npz", python="weights=True"))
        sizes, given, values = (dict(options.get(name) or {}) for name in ("dims", "input_types", "set"))
        types = {name: parse_type(t) if isinstance(t, str) else t for name, t in given.items()}
        cuts, stops = ((x,) if isinstance(x, str) else tuple(x) for x in (options.get("cut", ()), options.get("stop", ())))
        return cls(sizes, types, values, cast=cast, cuts=cuts, stops=stops, **flags)


def as_key(name: str) -> Key:
    """The key of a name: that of which it is the text, else of this name."""
    try:
        return parse_key(name)
    except KeyTextError:
        return Key(name)
