"""The engine process as the plan sees it: start, socket, calls, one owner of a port.

Messages are in ``dutperf.protocol``; which trial comes next is the caller's.
"""
