# A formula becomes a graph.
tidu build 'sum(log1p(exp(-t * (X @ w))))' -i 'X:f64[569,31]' -i 't:f64[569]' -i 'w:f64[31]' --name loss
