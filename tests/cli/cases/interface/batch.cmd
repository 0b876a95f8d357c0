# A batch of what the gradient does not depend on: there are as many gradients.
tidu build '2*x' -i x:f64[] | tidu grad --wrt x -o "$TMP/g.json"
tidu eval "$TMP/g.json" --set x=[1,2,3] --batch x=0
tidu grad "$TMP/g.json" --wrt x | tidu eval --set x=[1,2,3] --batch x=0
