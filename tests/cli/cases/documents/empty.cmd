# No input at all: most often the command before it failed.
tidu transpose
