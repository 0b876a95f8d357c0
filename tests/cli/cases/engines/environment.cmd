# The environment names an engine, and an option another one.
TIDU_ENGINE=native tidu eval samples/f.json --set x=3 -v 2>&1 | grep engine
TIDU_ENGINE=native tidu eval samples/f.json --set x=3 -v --engine numpy 2>&1 | grep engine
TIDU_ENGINE=nothing tidu eval samples/f.json --set x=3
