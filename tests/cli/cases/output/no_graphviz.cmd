# Pictures need Graphviz.
PATH=/nowhere "$(command -v tidu)" dot samples/f.json --format svg
