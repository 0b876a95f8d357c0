# A comma too many.
echo '{"tidu": 1, "graphs": [],}' | tidu check
