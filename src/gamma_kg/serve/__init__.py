"""The page, the REST interface and the tools for assistants, over the same calls that the command line makes.

`service.py` is the way in: what a caller may ask. `app.py` puts HTTP around it, `assistant.py` makes tools of it.
"""
