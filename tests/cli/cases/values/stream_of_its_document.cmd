# Standard input is the values.
tidu eval - --stream < samples/f.json
