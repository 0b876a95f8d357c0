tidu grad samples/f.json --wrt x --set x=3 --engine native --pipeline
