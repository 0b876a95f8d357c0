# No input but white space.
echo | tidu transpose
