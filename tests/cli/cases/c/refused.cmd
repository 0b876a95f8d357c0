# What has no C is refused by name, and nothing is written.
tidu build 'abs(z * z)' -i z:c128[2] -o "$TMP/f.c" || ls "$TMP"
