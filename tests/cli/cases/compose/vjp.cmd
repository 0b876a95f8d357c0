# The VJP of a composition is the composition of VJPs, reversed: f, then the VJP of g, then that of f: derivatives along one direction.
tidu vjp samples/compose_f.json --wrt x -o $TMP/vjp_f.json
tidu vjp samples/compose_g.json --wrt u -o $TMP/vjp_g.json
tidu compose samples/compose_f.json $TMP/vjp_g.json $TMP/vjp_f.json --share x --one-pass 1 | tidu eval --set x=2 --set y@-1=1
tidu compose samples/compose_f.json samples/compose_g.json | tidu vjp --wrt x | tidu eval --set x=2 --set y@-1=1
