# Functions with several results name several outputs.
tidu build 'q, r = divmod(x, 3)' -i 'x:i64[]' | tidu eval --set x=17
