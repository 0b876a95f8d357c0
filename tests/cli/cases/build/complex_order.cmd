# Complex numbers have no order.
tidu build 'maximum(z, 0)' -i 'z:c128[3]'
