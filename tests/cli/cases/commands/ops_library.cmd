# The ops of a library, which stand after the built-in ones; and those named in full.
tidu ops --ops samples/activations.json | grep activations.json
tidu ops --ops samples/activations.json huber gelu huber.jvp
