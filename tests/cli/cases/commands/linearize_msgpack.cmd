# msgpack goes through a pipeline as it comes in; convert shows it as JSON.
tidu convert samples/f.json --format msgpack | tidu linearize --wrt x | tidu transpose | tidu convert --format json
