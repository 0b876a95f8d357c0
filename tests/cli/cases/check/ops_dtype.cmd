# The dtypes of the numeric part are for the user to choose; in half precision difference quotients say nothing.
tidu check --ops mul --numeric --dtype bf16 | sed -E 's/\b(0|[0-9]e-[0-9]+)\b/small/g'
