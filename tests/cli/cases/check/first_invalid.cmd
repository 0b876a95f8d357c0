# Documents are checked up to the first that is not valid.
echo '{' | tidu check samples/f.json - samples/cube.json
