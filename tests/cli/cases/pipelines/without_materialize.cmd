# eval materializes by itself.
tidu linearize samples/f.json --wrt x | tidu eval --set x=3 --set x@1=1
