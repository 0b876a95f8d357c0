# Names that steer a terminal are escaped in JSON, and the document is the same.
tidu convert tests/cli/cases/output/steering.json | tee $TMP/out.json
tidu diff --exact $TMP/out.json tests/cli/cases/output/steering.json --json
