# --set of a structure sets its parts.
cd tests/cli/cases/given
tidu eval model.py:loss --inputs data.json --set 'params={"layers": [{"w": [[1],[1]], "b": [0]}]}'
tidu build model.py:loss --inputs data.json | tidu eval --inputs data.json
