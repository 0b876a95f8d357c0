tidu resolve samples/f.json --bind x=q
