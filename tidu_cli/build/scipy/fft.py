"""What `scipy.fft` has."""
