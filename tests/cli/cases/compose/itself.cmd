# A function after itself: the later one's input and graph have new names; x ↦ 2x² three times.
tidu compose samples/f.json samples/f.json samples/f.json | tidu eval --set x=1
