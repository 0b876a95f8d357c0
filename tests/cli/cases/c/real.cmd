# All floats as float; the option is for C.
tidu build 'x * 0.1' -i x:f64[] | tidu convert --real float --format c | grep -F 0.1
tidu build 'x * x' -i x:f64[] | tidu convert --real float
