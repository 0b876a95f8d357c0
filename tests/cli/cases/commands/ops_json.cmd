# The same, for programs.
tidu ops mul --json
