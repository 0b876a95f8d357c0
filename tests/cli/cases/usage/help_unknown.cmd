tidu help nope
