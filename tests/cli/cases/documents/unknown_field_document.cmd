# A field that the format does not have, on the document.
tidu check tests/cli/cases/documents/unknown_field_document.json
