# The same, for programs.
tidu ops mul --json | sed -E 's/("version": )".*"/\1.../'
