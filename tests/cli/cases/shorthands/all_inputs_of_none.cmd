# Without --wrt, where no input has a derivative.
tidu grad 'sum(1.0 * n)' -i n:i64[2]
