"""Everything simulated: an engine without packets, devices, gateways, searches' worlds.

The seams of the tree (``TesterEngine``, the bench of a search) have their fakes here;
the dry run, ``dutperf bench search`` and the tests use them.
"""
