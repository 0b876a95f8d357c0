# Chunks of another size.
python - <<END
import numpy as np
x = np.arange(6)
x[5] = 2**53 + 1
np.save('$TMP/x.npy', x)
END
evaluate() { tidu eval samples/rosenbrock.json --set x=@$TMP/x.npy --set y=2 --batch x=0 -o $TMP/z.npz "$@"; }
evaluate --chunk 2 2> $TMP/first || evaluate --chunk 3 --resume
