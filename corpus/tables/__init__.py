"""Files of rows as people send them: encoding, separator, workbook, times. Nothing here knows the database."""
