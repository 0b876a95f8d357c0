# A value that the document does not define.
tidu materialize tests/cli/cases/transform_errors/detached.json
