# Types of every value are checked, and derivatives against difference quotients.
tidu check samples/segment.json samples/events.json
