# Formulas have no lines.
tidu build 'x**2' -i x:f64[] --source
