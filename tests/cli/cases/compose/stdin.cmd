# One of the files may be standard input; with --quiet nothing is told.
tidu compose --quiet samples/compose_f.json - --format msgpack < samples/compose_g.json | tidu grad --wrt x --set x=2
