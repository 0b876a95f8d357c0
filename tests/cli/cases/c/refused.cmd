# What has no C is refused by name, and nothing is written.
tidu build 't - due' -i t:datetime[s] -i due:datetime[s] -o "$TMP/f.c" || ls "$TMP"
