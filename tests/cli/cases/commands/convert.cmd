# Documents are written in one way, whatever they looked like.
tidu convert tests/cli/cases/commands/sin.json
