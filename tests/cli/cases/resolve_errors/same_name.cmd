# Two different graphs of one name.
tidu resolve samples/f.json tests/cli/cases/resolve_errors/other_f.json
