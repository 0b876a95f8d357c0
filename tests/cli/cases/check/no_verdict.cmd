# There is none at a point where there is no value.
tidu build 'log(x)' -i x:f64[] | tidu check --numeric --inputs tests/cli/cases/check/minus_one.json
