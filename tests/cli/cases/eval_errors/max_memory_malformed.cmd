# Wrong usage: no size.
tidu eval samples/f.json --set x=3 --max-memory lots
