tidu jacobian samples/f.json --wrt x --forward --strong-zeros
