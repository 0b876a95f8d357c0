# A device that is not the engine's.
tidu eval samples/f.json --set x=3 --engine native --device gpu
