# A Hessian-vector product by an integer and a float at once.
tidu hvp samples/order.json --output total --wrt n --wrt price --set n=250 --set 'price=[9,8,7]' --set express=true --set n@2=1 --set 'price@2=[0,0,1]'
