"""Classes of annotated fields that do not change, as `dataclasses` makes them, but made without compiling code.

A dataclass takes about a millisecond to define, as its methods are written as text and compiled. A command imports some sixty such
classes, and that was a third of all that it did with a small file. Here all classes share the same methods, and those of a class of
which many objects are made are compiled then. Objects that change are dataclasses. What `dataclasses` does with its objects, it
does with these, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, ClassVar, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")

MANY = 100
"""Objects of a class after which its methods are compiled."""


def _required() -> NoReturn:
    raise LookupError


_UNSET: Any = object()
"""The value of a field that `__post_init__` sets."""


class _Field:
    """What there is to say of a field besides its annotation."""

    def __init__(self, make: Callable[[], Any] = _required, compare: bool = True, repr: bool = True, init: bool = True) -> None:
        self.make = make
        self.compare = compare
        self.repr = repr
        self.init = init


def field(
    *,
    default: Any = _required,
    default_factory: Callable[[], Any] = _required,
    compare: bool = True,
    repr: bool = True,
    init: bool = True,
) -> Any:
    """A field with a factory for its default, or one that comparisons, the repr or calls leave out."""
    return _Field(default_factory if default is _required else lambda: default, compare, repr, init)


class _Described:
    """The fields as `dataclasses` describes them, when that asks for them."""

    def __get__(self, instance: object, owner: type[Frozen]) -> Mapping[str, Any]:
        import dataclasses

        fields = {}
        for name, one in owner.__frozen_fields__.items():
            made = dataclasses.field(compare=one.compare, repr=one.repr, init=one.init)
            made.name, made._field_type = name, dataclasses._FIELD  # type: ignore[attr-defined]
            fields[name] = made
        return fields


class _Parameters:
    """What `dataclasses` says of how a class was made, when someone asks for it, as Dask does."""

    def __get__(self, instance: object, owner: type[Frozen]) -> Any:
        import dataclasses

        return dataclasses.make_dataclass("_", [], frozen=True).__dataclass_params__  # type: ignore[attr-defined]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class _Meta(type):
    """Makes fields of annotations, and slots unless objects have a dict, as those with cached properties must."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], *, slots: bool = True, eq: bool = True
    ) -> _Meta:
        fields: dict[str, _Field] = {**bases[0].__frozen_fields__} if bases else {}  # type: ignore[attr-defined]
        by_name: frozenset[str] = bases[0].__frozen_by_name__ if bases else frozenset()  # type: ignore[attr-defined]
        own, after = [], False
        for one, annotation in namespace.get("__annotations__", {}).items():
            if annotation.startswith("ClassVar"):
                continue
            if annotation == "KW_ONLY":
                after = True
                continue
            default = namespace.get(one, _required)
            is_field = isinstance(default, _Field)
            if (is_field or slots) and default is not _required:
                del namespace[one]
            own += [one] if one not in fields else []
            by_name |= {one} if after else frozenset()
            fields[one] = default if is_field else _Field(default if default is _required else _always(default))
        if slots:
            namespace["__slots__"] = (*own, *namespace.get("__slots__", ()))
        # Each class has its own entries, as those of one above it may be compiled for that one.
        if bases:
            shared = {"__init__": Frozen.__init__, "__eq__": Frozen.__eq__, "__hash__": Frozen.__hash__}
            if "__eq__" in namespace:
                shared.pop("__hash__")
            namespace = shared | namespace if eq else shared | {"__eq__": object.__eq__, "__hash__": object.__hash__} | namespace
        namespace |= {
            "__frozen_fields__": fields,
            "__frozen_by_name__": by_name,
            "__match_args__": tuple(n for n in fields if n not in by_name),
        }
        made = super().__new__(cls, name, bases, namespace)
        key = [n for n, one in fields.items() if one.compare]
        made.__frozen_key__ = staticmethod(attrgetter(*key) if len(key) > 1 else lambda x: tuple([getattr(x, n) for n in key]))
        made.__frozen_plain__ = not by_name and all(one.init for one in fields.values())
        made.__frozen_put__ = tuple(getattr(made, n).__set__ for n in fields) if slots else None
        made.__frozen_after__ = getattr(made, "__post_init__", None)
        made.__frozen_left__ = [MANY]
        return made

    __frozen_key__: Any
    __frozen_plain__: bool
    __frozen_put__: Any
    __frozen_after__: Any
    __frozen_left__: list[int]


def _always(value: Any) -> Callable[[], Any]:
    return lambda: value


class Frozen(metaclass=_Meta):
    """An object of annotated fields, equal to another if these are; with `eq=False` only to itself.

    It has slots, or with `slots=False` a dict. After it is made, `__post_init__` is called if there is one.
    """

    __frozen_fields__: ClassVar[dict[str, _Field]]
    __frozen_by_name__: ClassVar[frozenset[str]]
    __match_args__: ClassVar[tuple[str, ...]]
    __dataclass_fields__: ClassVar[Any] = _Described()
    __dataclass_params__: ClassVar[Any] = _Parameters()

    def __init__(self, *args: Any, **named: Any) -> None:
        cls = type(self)
        whole = not named and cls.__frozen_plain__ and len(args) == len(cls.__frozen_fields__)
        values = args if whole else _completed(cls, args, named)
        if cls.__frozen_put__ is not None:
            for put, value in zip(cls.__frozen_put__, values, strict=True):
                if value is not _UNSET:
                    put(self, value)
        else:
            self.__dict__.update((n, v) for n, v in zip(cls.__frozen_fields__, values, strict=True) if v is not _UNSET)
        if cls.__frozen_after__ is not None:
            cls.__frozen_after__(self)
        cls.__frozen_left__[0] -= 1
        if not cls.__frozen_left__[0]:
            _compile(cls)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"cannot assign to '{name}' of a {type(self).__name__}, which does not change")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"cannot delete '{name}' of a {type(self).__name__}, which does not change")

    def __eq__(self, other: object) -> bool:
        cls = type(self)
        return NotImplemented if type(other) is not cls else cls.__frozen_key__(self) == cls.__frozen_key__(other)

    def __hash__(self) -> int:
        return hash(type(self).__frozen_key__(self))

    def __repr__(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name, one in type(self).__frozen_fields__.items() if one.repr]
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __reduce__(self) -> Any:
        return _rebuilt, (type(self), {name: getattr(self, name) for name, one in type(self).__frozen_fields__.items() if one.init})


def _completed(cls: type[Frozen], args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    """All values in the order of fields. Raises TypeError as a call of a function does."""
    places = [name for name in cls.__match_args__ if cls.__frozen_fields__[name].init]
    if len(args) > len(places):
        raise TypeError(f"{cls.__name__}() takes {len(places)} positional arguments but {len(args)} were given")
    values = dict(zip(places, args, strict=False))
    for name, value in named.items():
        if name in values or name not in cls.__frozen_fields__ or not cls.__frozen_fields__[name].init:
            what = "multiple values for" if name in values else "an unexpected keyword"
            raise TypeError(f"{cls.__name__}() got {what} argument '{name}'")
        values[name] = value
    for name, one in cls.__frozen_fields__.items():
        if name not in values:
            if one.make is _required and one.init:
                raise TypeError(f"{cls.__name__}() missing a required argument: '{name}'")
            values[name] = _UNSET if one.make is _required else one.make()
    return [values[name] for name in cls.__frozen_fields__]


def _compile(cls: type[Frozen]) -> None:
    """Give a class methods that do what the shared ones do, without loops over its fields."""
    scope: dict[str, Any] = {"required": _required, "after": cls.__frozen_after__}
    given, body = {True: list[str](), False: list[str]()}, []
    for name, one in cls.__frozen_fields__.items():
        scope[f"make_{name}"] = one.make
        if one.init:
            given[name in cls.__frozen_by_name__].append(name if one.make is _required else f"{name}=required")
            if one.make is not _required:
                body.append(f"if {name} is required: {name} = make_{name}()")
        elif one.make is not _required:
            body.append(f"{name} = make_{name}()")
    names = [name for name, one in cls.__frozen_fields__.items() if one.init or one.make is not _required]
    if cls.__frozen_put__ is not None:
        scope |= {f"put_{name}": getattr(cls, name).__set__ for name in names}
        body += [f"put_{name}(self, {name})" for name in names]
    else:
        body += ["held = self.__dict__", *(f"held[{name!r}] = {name}" for name in names)]
    body += ["after(self)"] if cls.__frozen_after__ is not None else []
    parameters = ", ".join(["self", *given[False], *(["*", *given[True]] if given[True] else [])])
    lines = [f"def __init__({parameters}):", *(f"    {line}" for line in body or ["pass"])]
    mine, theirs = ("".join(f"{x}.{n}, " for n, one in cls.__frozen_fields__.items() if one.compare) for x in ("self", "other"))
    lines += ["def __eq__(self, other):", "    if type(other) is not type(self): return NotImplemented"]
    lines += [f"    return ({mine}) == ({theirs})", "def __hash__(self):", f"    return hash(({mine}))"]
    exec(compile("\n".join(lines), f"<methods of {cls.__qualname__}>", "exec"), scope)
    for method in ("__init__", "__eq__", "__hash__"):
        if getattr(cls, method) is getattr(Frozen, method):
            setattr(cls, method, scope[method])


def _rebuilt(cls: type[Frozen], values: dict[str, Any]) -> Frozen:
    return cls(**values)


def field_names(cls: type[Frozen]) -> tuple[str, ...]:
    """The names of its fields, in order."""
    return tuple(cls.__frozen_fields__)


def replace(one: T, **changes: Any) -> T:
    """A copy of a frozen object, or of a dataclass' one, with other values of some fields."""
    if not isinstance(one, Frozen):
        import dataclasses

        return dataclasses.replace(one, **changes)  # type: ignore[type-var]
    return type(one)(**{**{name: getattr(one, name) for name, f in type(one).__frozen_fields__.items() if f.init}, **changes})
