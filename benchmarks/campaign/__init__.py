"""The fault campaign: each module tries one kind of fault many times and counts what went wrong."""
