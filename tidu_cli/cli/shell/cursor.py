"""Where the cursor stands in a command line: the option or argument that the word there belongs to, and what else is given."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tidu_cli.frozen import Frozen


class Cursor(Frozen, slots=False):
    """Where the word to complete stands in the command line of a subcommand.

    `parameter` is the option or argument that it is a value of, if it is one's; `incomplete` is the value so far, and `before` what
    stands in the same word before it, as in --wrt=x. `arguments` are the other words that are no options, those after the cursor
    too, and `given` has the values of options by their first name, none of a flag.
    """

    parameter: click.Parameter | None
    incomplete: str
    before: str
    arguments: list[str]
    given: dict[str, list[str]]

    def values(self, option: str) -> list[str]:
        """The values that an option has elsewhere in the line."""
        return self.given.get(option, [])

    @property
    def taken(self) -> list[str]:
        """The values that the same option has elsewhere in the line."""
        assert self.parameter is not None
        return self.values(self.parameter.opts[0])


_CURSOR = "\0"
"""What stands for the word at the cursor as click parses the line: no word of a command line has it."""


def find(command: click.Command, words: Sequence[str], at: int) -> Cursor:
    """Where word `at` stands among the words after the command's name: with that parameter to which click gives it."""
    name, equals, value = words[at].partition("=")
    before, incomplete = (f"{name}=", value) if equals and name.startswith("--") else ("", words[at])
    parser = command.make_parser(click.Context(command, resilient_parsing=True))
    parser.ignore_unknown_options = True
    parsed, superfluous, _ = parser.parse_args([*words[:at], before + _CURSOR, *words[at + 1 :]])
    owner, arguments, given = None, [], {}
    for param in command.params:
        taken = parsed.get(str(param.name))
        values = [taken] if isinstance(taken, str) else list(taken) if isinstance(taken, list | tuple) else []
        if _CURSOR in values:
            owner = param
            values.remove(_CURSOR)
        if isinstance(param, click.Argument):
            arguments += values
        elif str(param.name) in parsed:
            given[param.opts[0]] = values
    if isinstance(owner, click.Argument) and incomplete.startswith("-") and incomplete != "-" and "--" not in words[:at]:
        owner = None  # what begins like an option
    return Cursor(owner, incomplete, before, [*arguments, *superfluous], given)
