# No derivative goes through a value.
tidu convert tests/cli/cases/onnx/tied.onnx --stop t --weights "$TMP/w.npz" --quiet |
  tidu grad --wrt g.head.weight --wrt val_14 --inputs "$TMP/w.npz" --set tokens=[0,1,2,0] --value
