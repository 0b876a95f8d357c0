# A program is compiled once, and runs as its document does.
tidu grad samples/rosenbrock.json --wrt x --wrt y | tidu compile -o $TMP/g.msgpack
tidu eval $TMP/g.msgpack --set x=2 --set y=1
tidu eval $TMP/g.msgpack --set x=2 --set y=1 --output y@-1
tidu eval $TMP/g.msgpack --set x=2 --set y=1 --move x=0.5
