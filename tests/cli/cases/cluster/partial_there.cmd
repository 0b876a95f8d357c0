# A run broke off, and is not gone on from unasked; then it is, with nothing left behind.
python - <<END
import numpy as np
x = np.arange(6)
x[5] = 2**53 + 1
np.save('$TMP/x.npy', x)
END
evaluate() { tidu eval samples/rosenbrock.json --set x=@$TMP/x.npy --set y=2 --batch x=0 --chunk 2 -o $TMP/z.npz "$@"; }
evaluate 2> /dev/null || ls $TMP $TMP/z.npz.partial
evaluate
