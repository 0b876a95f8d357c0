# A step is taken again with what it gave; the file holds the loss, too.
tidu step samples/rosenbrock.json --wrt x --wrt y --optimizer adam --lr 0.5 --clip-norm 2 -o $TMP/step.json
tidu step samples/rosenbrock.json --wrt x --wrt y --optimizer adam --init --inputs <(echo '{"x": -1, "y": 1}') -o $TMP/state.npz
for k in 1 2 3; do tidu eval $TMP/step.json --inputs $TMP/state.npz --force -o $TMP/state.npz; done
tidu eval $TMP/step.json --inputs $TMP/state.npz --format table
