# A while in reverse: bounded first, and NaN where the bound is too low.
cat > "$TMP/model.py" <<'END'
import tidu

def halved(x):
    return tidu.while_loop(lambda y: abs(y) >= 1, lambda y: y / 2, x) ** 2
END
cd "$TMP"
tidu build model.py:halved -i x:f64[] | tidu convert --bound-loops 5 > halved.json
tidu grad halved.json --wrt x --value --set x=11
tidu grad halved.json --wrt x --value --set x=99
tidu linearize halved.json --wrt x | tidu convert --bound-loops 5
