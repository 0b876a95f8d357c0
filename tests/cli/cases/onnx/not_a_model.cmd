# What is chosen of models is refused for documents.
tidu convert samples/f.json --dim batch=1 --cast f64
