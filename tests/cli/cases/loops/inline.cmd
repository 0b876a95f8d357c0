# Operations of the document are written out in bodies, too.
tidu materialize --inline samples/conformance/valid/loops_nested.json | tidu check --closure; tidu materialize --inline samples/conformance/valid/own_loop.json
