# What is spread is a batch.
tidu eval samples/rosenbrock.json --set x=1 --set y=2 --scheduler local:2
