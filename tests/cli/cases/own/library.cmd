# A library is checked at small types.
tidu check tests/cli/cases/own/library.json --all | sed -E 's/\b(0|[0-9]e-(08|09|[1-9][0-9]))\b/small/g'
