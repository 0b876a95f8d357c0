# Also of what is built, and of axes. A part of a record may follow the record.
printf 'def f(p):\n    return {"y": p["a"] * p["b"]}\n' > $TMP/f.py
tidu build $TMP/f.py:f -i p.a:f64[] -i p.b:f64[] -o $TMP/p.json
tidu eval $TMP/p.json --set 'p={"a": 1, "b": 2}' --set p.a=3
tidu eval 'x * 2' --set x=3 --set 'x=[1,2]' || true
tidu eval 'x * 2' -i x:f64[2] --batch x=0 --batch x=-1 --set 'x=[[1,2]]'
