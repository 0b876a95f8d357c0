# Commands can be pasted whatever names they hold, and show what these are.
key=$(printf "x\302\23331m\342\200\256'")
tidu grad --pipeline tests/cli/cases/output/steering.json --wrt "$key" | tee $TMP/run.sh
bash $TMP/run.sh | tidu eval --set "$key=0"
