"""Everything simulated: an engine without packets, devices, gateways, a tester.

The seams of the tree (``TesterEngine``, the bench of a search) have their fakes here;
the dry run, the tests and the makers' tools use them.
"""
