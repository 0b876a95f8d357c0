"""The catalogue: docs/primitives.md is current, and says what the primitives say."""

from __future__ import annotations

import pytest

from tests.checking.sets import ROOT
from tidu_cli.checking.catalogue import entry
from tidu_cli.lax.vocabulary import BUILTIN, FAMILIES
from tidu_cli.rules.catalogue import short
from tidu_cli.rules.contract import Primitive
from tools.catalogue import to_markdown

PAGE = (ROOT / "docs" / "primitives.md").read_text()


@pytest.mark.check
def test_the_published_catalogue_is_current() -> None:
    assert to_markdown() == PAGE, "run: make generated"


def test_every_primitive_is_in_it_once() -> None:
    headings = [line.removeprefix("### `").removesuffix("`") for line in PAGE.split("\n") if line.startswith("### ")]
    assert headings == [primitive.name for primitive in BUILTIN]
    assert PAGE.count("\n## ") == len(FAMILIES)


def test_long_texts_are_cut_short() -> None:
    assert [short("x" * n, 6) for n in (5, 6, 7)] == ["xxxxx", "xxxxxx", "xxx..."]


@pytest.mark.parametrize("primitive", list(BUILTIN), ids=lambda primitive: primitive.name)
def test_every_primitive_says_what_it_is(primitive: Primitive) -> None:
    description = entry(primitive)
    assert primitive.catalogue.formula and primitive.catalogue.summary and primitive.catalogue.examples
    assert not primitive.catalogue.summary.endswith(".")
    assert all(f"`{name}`" in description.attrs_text for name in description.attrs), "the docstring of its attrs explains each"
    assert set(description.emits.jvp) | set(description.emits.transpose) <= set(BUILTIN.primitives)
    rules = primitive.rules
    assert ("jvp" in description.rules, "transpose" in description.rules) == (rules.jvp is not None, rules.transpose is not None)
    assert description.to_data()["op"] == primitive.name
