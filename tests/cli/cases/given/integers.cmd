# Integers are left out of a pattern, with a note.
cd tests/cli/cases/given
tidu jvp 'x * n' -i x:f64[] -i n:i64[] --wrt '*' --set x=2 --set n=3 --set x@1=1
