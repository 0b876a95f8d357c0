# Checkpoints, and between them values computed again, each from what waits for the cotangent. A note says what is won.
tidu build 'sin(sin(sin(sin(sin(sin(sin(sin(x))))))))' -i x:f64[1000] | tidu linearize --wrt x | tidu transpose | tidu materialize --recompute sqrt
