# Two documents in one pipe.
cat samples/f.json samples/f.json | tidu check
