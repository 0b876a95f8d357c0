"""Options of formats of other systems, as the adapters declare them: what a file leaves open, and how a result is written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import click

from tidu_cli.cli.main import Command, fail
from tidu_cli.cli.options import click_option
from tidu_cli.errors import TiduError
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.installed import declared_options, format_named, load_formats_named_by
from tidu_cli.port_data import Imported


class FormatCommand(Command):
    """A command with the options of readers; and with those that concern the result, which writers have, if it writes documents.

    They stand after the option `after`. Formats that other packages bring add theirs where the command line names them.
    """

    def __init__(self, *args: Any, after: str, writes: bool = False, **options: Any) -> None:
        super().__init__(*args, **options)
        self._writes = writes
        place = 1 + next(k for k, param in enumerate(self.params) if after in param.opts)
        self._before, self._after = self.params[:place], self.params[place:]
        self._add_options()

    def _add_options(self) -> None:
        reading = [option for _, option in declared_options("reading").values() if self._writes or not option.of_result]
        writing = [option for _, option in declared_options("writing").values() if self._writes]
        taken = {flag for param in (*self._before, *self._after) for flag in param.opts}
        added = {option.flag: click_option(option) for option in reversed([*reading, *writing]) if option.flag not in taken}
        self.params = [*self._before, *reversed(added.values()), *self._after]

    def with_options_of(self, words: Sequence[str]) -> None:
        """Take the options of formats that these words of a command line name. Raises PluginError."""
        load_formats_named_by(words)
        self._add_options()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line."""
        try:
            self.with_options_of(args)
        except TiduError as failure:  # of a package that is broken, before anything runs
            fail(ctx, str(failure))
        return super().parse_args(ctx, args)


def is_given(value: Any) -> bool:
    """Whether an option was given, going by its value: flags that were not are False."""
    return value is not False and value not in (None, ())


def readers_options(ctx: click.Context, words: Sequence[str], taken: Collection[str]) -> list[click.Option]:
    """The options of readers, but for flags that are taken; of formats that other packages bring where these words name them."""
    try:
        load_formats_named_by(words)
    except TiduError as failure:
        fail(ctx, str(failure))
    return [click_option(option) for _, option in declared_options("reading").values() if option.flag not in taken]


def options_read(values: Mapping[str, Any]) -> dict[str, Any]:
    """The options of readers that were given, by name. Raises UsageError where one that makes a mapping has a name twice."""
    read = {}
    for name, (_, option) in declared_options("reading").items():
        value: Any = values.get(name)
        if not is_given(value):
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
    for name, (owner, option) in declared_options("writing").items():
        if not is_given(values.get(name)):
            continue
        if name not in known:
            way = f"give --format {owner.name} or -o FILE{owner.suffixes[0]}"
            raise click.UsageError(f"{option.flag} is for {owner.name}, and the result is {to}; {way}")
        written[name] = values[name]
    return written


def words_read(options: Mapping[str, Any]) -> list[str]:
    """Options of readers as words of a command line."""
    words: list[str] = []
    for name, (_, option) in declared_options("reading").items():
        value = options.get(name, ())
        texts = [f"{key}={x}" for key, x in value.items()] if option.pairs and value else value if option.repeats else [value]
        words += [word for text in texts if text != () for word in (option.flag, str(text))]
    return words


def values_file(options: Mapping[str, Any]) -> str | None:
    """The file to which the values go that a reader gives beside the document, where an option names it."""
    read = declared_options("reading")
    return next((options[name] for name, (_, option) in read.items() if option.values_file and name in options), None)


def values_read(imported: Imported) -> dict[Key, Any]:
    """The values that a reader gives beside the document."""
    return {parse_key(text): value for text, value in imported.weights.items()}


def with_values_written(imported: Imported, options: Mapping[str, Any], rest: Callable[[], None]) -> None:
    """Do the rest, once the values that a reader gives beside the document are in their file. If it fails, that is as it was."""
    if (beside := values_file(options)) is None:
        rest()
        return
    from tidu_cli.formats.values import write_values
    from tidu_cli.formats.write import write_first

    write_first((write_values(values_read(imported), "npz"),), beside, rest)
