"""Frozen classes behave as frozen dataclasses do, before and after their methods are compiled."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidu_cli.frozen import MANY, Frozen, field, replace


class Point(Frozen):
    """A twin of `PointTwin`, with slots."""

    x: float
    names: list[str] = field(default_factory=list)
    _: KW_ONLY
    y: float = 0.0
    note: str = field(default="", compare=False)
    hidden: int = field(default=1, repr=False)
    memo: dict[int, int] = field(default_factory=dict, init=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PointTwin:
    x: float
    names: list[str] = dataclasses.field(default_factory=list)
    _: KW_ONLY
    y: float = 0.0
    note: str = dataclasses.field(default="", compare=False)
    hidden: int = dataclasses.field(default=1, repr=False)
    memo: dict[int, int] = dataclasses.field(default_factory=dict, init=False, compare=False, repr=False)


class Named(Frozen, slots=False, eq=False):
    name: str
    size: int = 2

    @cached_property
    def long(self) -> str:
        return self.name * self.size

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a name is empty")


class Sized(Frozen):
    items: tuple[int, ...]
    size: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", len(self.items))


class Empty(Frozen):
    pass


class Longer(Named, slots=False, eq=False):
    more: int = 3


def outcome(make, args, named):
    try:
        made = make(*args, **named)
    except TypeError:
        return "TypeError"
    values = {f.name: getattr(made, f.name) for f in dataclasses.fields(made)}
    return values, repr(made).replace("Twin", "")


arguments = st.lists(st.sampled_from([1.0, 2.0, ["a"]]), max_size=3)
names = st.dictionaries(
    st.sampled_from(["x", "names", "y", "note", "hidden", "memo", "other"]), st.sampled_from([1.0, ["b"]]), max_size=4
)


@pytest.mark.parametrize("compiled", [False, True])
@given(args=arguments, named=names)
def test_calls_are_those_of_a_dataclass(compiled, args, named):
    for _ in range(MANY * compiled):
        Point(1.0)
    assert ("<methods of " in Point.__init__.__code__.co_filename) or not compiled
    assert outcome(Point, args, named) == outcome(PointTwin, args, named)


@pytest.mark.parametrize("compiled", [False, True])
def test_objects_are_equal_where_their_fields_are(compiled):
    class Pair(Frozen):
        a: object
        b: object = 1

    for _ in range(MANY * compiled):
        Pair(1)
    assert Pair(1) == Pair(1, 1) and Pair(1) != Pair(2) and Pair(1) != (1, 1)
    assert hash(Pair(1)) == hash(Pair(1)) and len({Pair(1), Pair(1), Pair(2)}) == 2
    assert Point(1.0, note="a") == Point(1.0, note="b") and Point(1.0, hidden=1) != Point(1.0, hidden=2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point(1.0))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_field_may_follow_from_others(compiled):
    made = [Sized((1, 2)) for _ in range(1 + MANY * compiled)]
    assert made[-1].size == 2 and replace(made[-1], items=(1,)).size == 1 and repr(made[-1]) == "Sized(items=(1, 2), size=2)"
    with pytest.raises(TypeError, match="unexpected keyword"):
        Sized((1,), size=3)


def test_what_is_above_keeps_its_methods():
    made = [Named("a") for _ in range(2 * MANY)]
    assert Longer("b", more=5).more == 5 and Longer("b").long == "bb"
    assert made[0] != made[1] and Longer("b", 1, 2) != Longer("b", 1, 2)
    with pytest.raises(ValueError, match="a name is empty"):
        Named("")


def test_there_may_be_no_field():
    made = {Empty() for _ in range(2 * MANY)}
    assert made == {Empty()} and repr(Empty()) == "Empty()"


def test_objects_do_not_change():
    for one, name in ((Point(1.0), "x"), (Named("a"), "name"), (Point(1.0), "new")):
        with pytest.raises(AttributeError, match=f"cannot assign to '{name}'"):
            setattr(one, name, 2)
        with pytest.raises(AttributeError, match=f"cannot delete '{name}'"):
            delattr(one, name)


def test_they_are_replaced_copied_and_sent():
    one = Point(1.0, ["a"], y=2.0, note="n")
    one.memo[1] = 1
    for made in (replace(one, y=3.0), dataclasses.replace(one, y=3.0), PointTwin(1.0)):
        assert made.memo == {}, "the memo of the copy is a new one"
    assert replace(one, y=3.0) == dataclasses.replace(one, y=3.0) == Point(1.0, ["a"], y=3.0)
    for other in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
        assert other == one and other.note == "n"
    assert Point.__dataclass_params__.frozen
    assert dataclasses.asdict(Named("a")) == {"name": "a", "size": 2}
    assert replace(PointTwin(1.0), y=4.0) == PointTwin(1.0, y=4.0)
    match one:
        case Point(1.0, ["a"]):
            pass
        case _:
            raise AssertionError("fields by position are those of a call")
