# All inputs of the document in the order declared, or those that an output depends on; then x is none, and a misspelt key.
tidu linearize samples/f.json --wrt x | tidu transpose | tidu linearize --wrt x -o "$TMP/second.json"
tidu materialize "$TMP/second.json" | tidu info | grep inputs:
tidu materialize "$TMP/second.json" --needed-inputs -o "$TMP/less.json"
tidu info "$TMP/less.json" | grep inputs:
tidu eval "$TMP/less.json" --set y@-1=1 --set x@2=1
tidu eval "$TMP/less.json" --set x=3 --set y@-1=1 --set x@2=1
