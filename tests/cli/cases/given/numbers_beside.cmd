# Of these a note tells where other names have types.
tidu build 'a * sum(x)' -i x:f64[2] | tidu eval --set a=2 --set x=3,4
