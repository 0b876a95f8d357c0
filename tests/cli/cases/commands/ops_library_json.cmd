# The same, for programs.
tidu ops --ops samples/activations.json --json silu huber.jvp
