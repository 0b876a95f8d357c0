# What has no NumPy source is refused by name, and nothing is written.
tidu build 'sum(x * y)' -i x:bf16[2] -i y:bf16[2] -o "$TMP/f.py" || { s=$?; ls "$TMP"; exit $s; }
