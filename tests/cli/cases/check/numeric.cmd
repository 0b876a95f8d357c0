# Derivatives against difference quotients, at random inputs; which errors are small depends on the machine.
tidu check samples/rosenbrock.json --numeric --seed 3 | sed -E 's/\b(0|[0-9]e-(08|09|[1-9][0-9]))\b/small/g'
