# What is built is the first stage of the pipeline, which gives the same.
cd tests/cli/cases/given
tidu grad model.py:loss --inputs data.json --wrt params.layers.1.b --pipeline
bash -euo pipefail -c "$(tidu grad model.py:loss --inputs data.json --wrt params.layers.1.b --pipeline)"
