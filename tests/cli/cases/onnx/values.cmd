# Values are not written as ONNX.
tidu grad samples/f.json --wrt x --set x=3 -o "$TMP/f.onnx"
