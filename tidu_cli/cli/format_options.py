"""Options of formats of other systems, as the adapters declare them: what a file leaves open, and how a result is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from tidu_cli.cli.main import Command
from tidu_cli.cli.options import Parsed
from tidu_cli.installed import declared_options, format_named, formats_named_by
from tidu_cli.port_data import Option
from tidu_cli.ports import Format


class FormatCommand(Command):
    """A command with the options of readers; and with those that concern the result, which writers have, if it writes documents.

    They stand after the option `after`. Formats that other packages bring add theirs where the command line names them.
    """

    def __init__(self, *args: Any, after: str, writes: bool = False, **options: Any) -> None:
        super().__init__(*args, **options)
        self._writes = writes
        self.brought: list[Format] = []
        """Formats of other packages that the command line names."""
        place = 1 + next(k for k, param in enumerate(self.params) if after in param.opts)
        self.params[place:place] = map(_click_option, self._declared())

    def _declared(self, more: Iterable[Format] = ()) -> list[Option]:
        reading = [option for _, option in declared_options("reading", more).values() if self._writes or not option.of_result]
        return [*reading, *(option for _, option in declared_options("writing", more).values() if self._writes)]

    def with_options_of(self, words: Sequence[str]) -> None:
        """Take the options of formats that these words of a command line name."""
        self.brought = formats_named_by(words)
        known = {name for param in self.params for name in param.opts}
        self.params += [_click_option(o) for o in self._declared(self.brought) if o.flag not in known]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line."""
        self.with_options_of(args)
        ctx.meta[_BROUGHT] = self.brought
        return super().parse_args(ctx, args)


_BROUGHT = "tidu.brought"
"""Under which click's context holds the formats of other packages that the command line names."""


def _click_option(option: Option) -> click.Option:
    kind = click.Choice(option.choices) if option.choices else Parsed(option.name, option.parse)
    multiple = option.pairs or option.repeats
    return click.Option([option.flag, option.name], type=kind, multiple=multiple, metavar=option.metavar, help=option.help)


def _brought() -> list[Format]:
    found: list[Format] = click.get_current_context().meta.get(_BROUGHT, [])
    return found


def options_read(values: Mapping[str, Any]) -> dict[str, Any]:
    """The options of readers that were given, by name. Raises UsageError where one that makes a mapping has a name twice."""
    read = {}
    for name, (_, option) in declared_options("reading", _brought()).items():
        value = values.get(name)
        if value in (None, ()):
            continue
        if option.pairs:
            names = [name for name, _ in value]
            if twice := next((name for name in names if names.count(name) > 1), None):
                raise click.UsageError(f"{option.flag} gives '{twice}' twice")
            value = dict(value)
        read[name] = value
    return read


def options_written(values: Mapping[str, Any], to: str) -> dict[str, Any]:
    """The options of the writer of the format `to` that were given. Raises UsageError for those of another writer."""
    writer = format_named(to)
    known = {option.name for option in writer.writing} if writer else set()
    written = {}
    for name, (owner, option) in declared_options("writing", _brought()).items():
        if values.get(name) in (None, ()):
            continue
        if name not in known:
            way = f"give --format {owner.name} or -o FILE{owner.suffixes[0]}"
            raise click.UsageError(f"{option.flag} is for {owner.name}, and the result is {to}; {way}")
        written[name] = values[name]
    return written


def values_file(options: Mapping[str, Any]) -> str | None:
    """The file to which the values go that a reader gives beside the document, where an option names it."""
    read = declared_options("reading", _brought())
    return next((options[name] for name, (_, option) in read.items() if option.values_file and name in options), None)
