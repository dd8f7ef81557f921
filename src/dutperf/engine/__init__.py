"""The engine process as the plan sees it: start, socket, calls.

Messages are in ``dutperf.protocol``; which trial comes next is the caller's.
"""
