# The Hessian of the sum of one output of several, and the pipeline that it is short for.
tidu hessian 'u = x**3; v = x * sum(x)' --sum --output u --set x=1,2 && tidu hvp 'u = x**3; v = x * sum(x)' --sum --output u -i x:f64[2] --pipeline
