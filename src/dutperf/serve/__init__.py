"""A local web page of the runs below a directory: read only, no state of its own.

It lists them, shows and compares their reports, and follows the one that goes on.
"""
