# An -i has no use where a file is read.
cd tests/cli/cases/given
tidu eval ../../../../samples/f.json -i x:f64[]
