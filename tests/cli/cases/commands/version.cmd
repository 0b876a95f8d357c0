# The version.
tidu --version | sed 's/[0-9][0-9.a-z]*$/VERSION/'
