# Any name is drawn as it is: quotes, backslashes, entities and line ends are escaped.
tidu dot tests/cli/cases/commands/names.json
