# Inputs that the derivative does not depend on may be set all the same.
tidu jvp samples/affine.json --wrt b --set 'b=[1,2]' --set 'b@1=[1,0]'
