# Zeros beside the weights; weights without a value are told of.
tidu step samples/rosenbrock.json --wrt x --wrt y --optimizer momentum --accumulate 4 --init
