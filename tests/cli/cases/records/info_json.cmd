# The same for programs.
tidu info samples/events.json --json
