# The commands.
tidu --help
