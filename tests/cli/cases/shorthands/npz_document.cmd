# Documents have no npz form.
tidu grad samples/f.json --wrt x --format npz
