# Pass 1 of two files that were linearized apart is two calls: with one x@1, h@1 would be no derivative of anything.
tidu build 'y = x * x' -i x:f64[] | tidu linearize --wrt x -o $TMP/f1.json
tidu build 'h = w * x' -i x:f64[] -i w:f64[] --name h | tidu linearize --wrt x -o $TMP/h1.json
for direction in 1 2
do
  tidu convert --pass 1=2 $TMP/f1.json | tidu resolve $TMP/h1.json - --bind w=y@2 | tidu eval --set x=3 --set x@1=$direction --set x@2=1
done
tidu resolve $TMP/h1.json $TMP/f1.json --bind w=y@1
