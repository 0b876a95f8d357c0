# The primitives, with their rules.
tidu ops mul dot_general constant
