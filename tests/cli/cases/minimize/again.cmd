# Values go back in, and a fit goes on from where one stopped.
tidu minimize samples/rosenbrock.json --wrt '*' --set x=-1 --set y=1 --max-iterations 3 -o $TMP/fit.json 2>$TMP/why || echo status $?
tidu minimize samples/rosenbrock.json --wrt '*' --inputs $TMP/fit.json -o $TMP/better.npz --quiet
tidu eval samples/rosenbrock.json --inputs $TMP/better.npz | python3 -c 'import json, sys; print(json.load(sys.stdin)["f"] < 1e-9)'
