# Nor does a formula.
tidu grad 'x**2 + y' -i x:f64[] -i y:f64[] --weights "$TMP/w.npz" --wrt x
