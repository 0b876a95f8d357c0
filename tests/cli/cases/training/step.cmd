# What is fed back has the names of inputs.
tidu step samples/mlp.json --wrt W1 --wrt b1 --optimizer momentum --lr 0.1 --format msgpack | tidu info
