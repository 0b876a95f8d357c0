# Primitives: all parts, in double precision, real and complex.
tidu check --ops sin floor dot_general | sed -E 's/\b(0|[0-9]e-(08|09|[1-9][0-9]))\b/small/g'
