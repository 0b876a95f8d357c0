# A field that a record has not.
sed 's/"name": "x"/"name": "X"/' samples/segment.json | tidu check
