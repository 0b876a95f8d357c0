# A misspelt command.
tidu linearise samples/f.json
