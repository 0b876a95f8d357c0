"""What is chosen of a model when it is read: sizes, weights, floats and where it is cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tidu_cli.errors import ArgumentError, KeyTextError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.types import FLOATS, TensorType, parse_type


@dataclass(frozen=True)
class Choices:
    """`sizes` of symbolic dimensions by name, `types` of inputs by name, and `values` of inputs that are constants by name.

    With `weights` the initializers of floats are inputs. `cast` is the dtype for all floats, None for their own. `cuts` are
    names of values that become inputs.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    types: Mapping[str, TensorType] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    weights: bool = False
    cast: str | None = None
    cuts: tuple[str, ...] = ()

    @property
    def chosen(self) -> list[str]:
        """What there is a choice of, by the names of options."""
        given = {
            "dim": self.sizes,
            "input-type": self.types,
            "set": self.values,
            "weights": self.weights,
            "cast": self.cast,
            "cut": self.cuts,
        }
        return [name for name, value in given.items() if value]

    @classmethod
    def of(
        cls,
        sizes: Mapping[str, int] | None,
        types: Mapping[str, str | TensorType] | None,
        values: Mapping[str, Any] | None,
        weights: bool,
        cast: str | None,
        cuts: str | Sequence[str],
    ) -> Choices:
        """What the functions of Python take. Raises TypeTextError, and ArgumentError for a dtype that is none of floats."""
        if cast is not None and cast not in FLOATS:
            raise ArgumentError(f"argument 'cast' takes a dtype of floats ({', '.join(sorted(FLOATS))}), not {cast!r}")
        given = {name: parse_type(t) if isinstance(t, str) else t for name, t in (types or {}).items()}
        return cls(dict(sizes or {}), given, dict(values or {}), weights, cast, (cuts,) if isinstance(cuts, str) else tuple(cuts))


Claim = Literal["verified", "unverified", "changed"]
"""Whether a file that says which document it was written of is that document, as a reader knows: by writing it anew, by the file's
own word, or not, so that it is read by what it runs."""


@dataclass(frozen=True)
class Imported:
    """What was read: the document, the values of weights that are its inputs, by name, and what the user should know of it.

    `claim` is None for a file that says of no document that it is one.
    """

    document: Document
    weights: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    claim: Claim | None = None


def as_key(name: str) -> Key:
    """The key of a name: that of which it is the text, else of this name."""
    try:
        return parse_key(name)
    except KeyTextError:
        return Key(name)
