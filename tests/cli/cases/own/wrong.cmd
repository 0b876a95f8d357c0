# A jvp that is not that of forward: the op, its inputs and where they are.
tidu check tests/cli/cases/own/wrong.json --numeric | sed -E 's/\b(0|[0-9]e-(08|09|[1-9][0-9]))\b/small/g'
