# Weights that constant folding made are named, and those that a pattern leaves; a score of [1,1] is one number.
tidu convert tests/cli/cases/onnx/tied.onnx --weights "$TMP/w.npz" |
  tidu grad --wrt 'g.*' --inputs "$TMP/w.npz" --set tokens=[0,1,2,0] --value
