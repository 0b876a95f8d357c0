# All blocks in either mode, of outputs that are zero or no numbers, and of inputs that nothing depends on, too.
tidu build 'a = x + x; b = z; c = x < 0' -i x:f64[] -i z:f64[2] -o "$TMP/f.json"
tidu jacobian "$TMP/f.json" --wrt x --wrt z --forward --set x=1 --set z=[1,2]
tidu jacobian "$TMP/f.json" --wrt x --wrt z --reverse --set x=1 --set z=[1,2]
tidu jacobian "$TMP/f.json" --wrt x --output b --reverse | tidu info | tail -n 2
tidu linearize "$TMP/f.json" --wrt x --output b --output c | tidu transpose | tidu transpose | tidu matrix | tidu info | tail -n 2
