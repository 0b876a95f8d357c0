# Several results are not one.
tidu build 'divmod(x, 3) + 1' -i 'x:i64[]'
