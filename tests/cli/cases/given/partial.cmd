# What data say of a type loses against -i.
cd tests/cli/cases/given
tidu build model.py:loss --inputs data.json -i params.layers.1.b:f32[1] | tidu info --json | grep -o 'params[^,]*f32[^,]*' | head -n 1
