# The output of one document is the input of the next, which standard error tells as --bind of resolve takes it.
tidu compose samples/compose_f.json samples/compose_g.json
