"""The tester measured by itself: its passport, which results are held against.

``loops`` connects the ports to each other, ``measuring`` finds what is safe,
``keeping`` stores it for this machine alone, ``making`` is what a run asks.
"""
