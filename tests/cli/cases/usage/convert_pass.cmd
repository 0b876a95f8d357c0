# A renumbering is OLD=NEW.
tidu convert samples/f.json --pass 2
