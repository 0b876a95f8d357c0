"""What is said of an application of a primitive: a formula, and what it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Phrase:
    """An application: as a formula of its operands; and what is done, a `noun` such as `product` or, of arrays, a participle.

    `way` is how a derivative goes through it, `through flip`, where that is not just the noun.
    """

    formula: str
    what: str
    noun: bool = False
    way: str = ""

    @property
    def passing(self) -> str:
        """How a derivative goes through it: what follows `goes back`."""
        if self.way:
            return f" {self.way}"
        return f" through the {self.what}" if self.noun else f", {self.what}"


Attributes = Mapping[str, Any]
