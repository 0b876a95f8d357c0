"""What `scipy.signal` has."""
