# Numbers move, too, along tangents of any type that theirs admits.
tidu eval samples/f.json --set x=3 --move x=-1
tidu eval samples/f.json --set x=3 --move 'x={"type": "f32[]", "data": [0.5]}'
