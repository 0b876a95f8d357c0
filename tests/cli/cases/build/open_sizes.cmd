# Types with open sizes: size(x) is a number of the graph, and one file is for arrays of all sizes, derivatives included.
tidu build 'sum(x*x)/size(x)' -i 'x:f64[N,3]' -o "$TMP/f.json"
cat "$TMP/f.json"
tidu grad "$TMP/f.json" --wrt x | tidu eval --set 'x=[[1,2,3],[4,5,6]]'
