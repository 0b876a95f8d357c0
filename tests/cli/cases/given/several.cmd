# Where there are several documents, each takes the -i that it has names for.
cd tests/cli/cases/given
tidu diff 'x * 2' 'y + x' -i x:f64[] -i y:f64[] || true
tidu compose --quiet 'x * 2' 'sin(z)' -i x:f64[] -i z:f64[] | tidu eval --set x=1
tidu compose 'x * 2' 'sin(z)' -i x:f64[] -i z:f64[] -i w:f64[]
