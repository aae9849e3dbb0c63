"""Files: written whole or not at all, taken up again, rows in many formats."""
