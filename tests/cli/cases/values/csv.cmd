# csv is read as it is written, with numbers, vectors, matrices, flags, complex numbers, and what is not finite.
tidu eval 's = sum(x); v = x * (1 + 2j); m = outer(x, x); b = x > 1; i = 1 / (x - 1)' --set x=1,2,3 -o $TMP/v.csv && cat $TMP/v.csv && tidu eval 's * m[1] + v + where(b, i, 0)' --inputs $TMP/v.csv -i b:bool[3]
