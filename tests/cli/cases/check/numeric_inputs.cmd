# The same at inputs of one's own; a values file may hold more.
tidu check samples/rosenbrock.json --numeric --inputs tests/cli/cases/check/values.json | sed -E 's/\b(0|[0-9]e-(08|09|[1-9][0-9]))\b/small/g'
