# What is read decompresses to no more than memory may hold.
{ printf '{'; head -c 300000000 /dev/zero | tr '\0' ' '; } | gzip -1 | tidu info --max-memory 100M
