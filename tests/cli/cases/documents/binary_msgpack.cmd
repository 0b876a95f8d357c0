# Something that begins like msgpack.
printf '\202\244tidu\001\301' | tidu check
