# Something else.
printf '\377\330\000\001garbage' | tidu check
