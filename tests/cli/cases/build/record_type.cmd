# A record type that is not closed.
tidu build 'p.a' -i 'p:{a:f64[]'
