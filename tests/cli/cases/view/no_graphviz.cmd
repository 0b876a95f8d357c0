# Pages need no Graphviz: without it they draw themselves.
PATH=/nowhere "$(command -v tidu)" view samples/f.json | grep -c data-dot=.digraph
