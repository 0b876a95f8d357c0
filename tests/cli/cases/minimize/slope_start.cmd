# A gradient that is not finite where it starts.
tidu minimize 'loss = sqrt(x) + x' --set x=0 --wrt x
