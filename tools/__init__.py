"""Tools of those who make dutperf: of the checkout, in no package.

What each shows, and how it is called, stands in docs/developing.md.
"""
