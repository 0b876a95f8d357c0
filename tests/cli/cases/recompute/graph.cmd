# All of a graph but its outputs, as jax.checkpoint does.
tidu build 'sin(sin(sin(sin(sin(sin(x))))))' --output h --name f -i x:f64[1000] -o $TMP/f.json
tidu build 'sin(sin(sin(sin(sin(sin(a))))))' --output y --name g -i a:f64[1000] -o $TMP/g.json
tidu resolve $TMP/f.json $TMP/g.json --bind a=h | tidu linearize --wrt x | tidu transpose -o $TMP/grad.json
tidu materialize $TMP/grad.json --recompute graph=f --recompute graph=g | tidu info
