tidu eval ''
