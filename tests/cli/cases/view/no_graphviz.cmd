# Pages need Graphviz.
PATH=/nowhere "$(command -v tidu)" view samples/f.json
