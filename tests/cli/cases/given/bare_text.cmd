# Text of a constant has quotes.
cd tests/cli/cases/given
tidu build model.py:decay -i x0:f64[2] -i k:f64[] -i mode=exact
