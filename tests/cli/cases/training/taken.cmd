# A name of the document's that the step needs.
tidu rename samples/rosenbrock.json --key y=momentum.x | tidu step --wrt x --optimizer momentum
