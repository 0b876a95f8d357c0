# Each pass is materialized; without values, with them, and of several outputs.
tidu derivative samples/quartic.json --wrt x --order 3 --pipeline
tidu derivative samples/two_outputs.json --wrt r --output x --order 2 --set r=2 --set theta=1 --pipeline
