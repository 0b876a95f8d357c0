# csv has rows and columns, and no more axes.
tidu build 'x * 2' -i x:f64[1,1,2] | tidu eval --set 'x=[[[1,2]]]' --format csv
