# --output chooses outputs: of the head first, then of the latest graph that has them.
tidu linearize samples/f.json --wrt x | tidu eval --output y --output y@1 --set x=3 --set x@1=1
