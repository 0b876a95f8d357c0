# Numbers need every input that the head needs, as in eval.
tidu linearize samples/f.json --wrt x | tidu view --set x=3
