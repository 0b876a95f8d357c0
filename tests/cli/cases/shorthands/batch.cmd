# Gradients and Hessians at many points, whose types do not have the axis of the batch.
tidu grad 'x**2 * y' --set x=1,2,3 --set y=2 --batch x=0 && tidu hessian 'x**2 * y' --wrt x --set x=1,2,3 --set y=2 --batch x=0 && tidu jacobian samples/vector.json --set 'x=[[1,1],[2,2],[3,3]]' --batch x=1
