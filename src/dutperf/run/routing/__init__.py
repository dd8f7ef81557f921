"""Routes that the tester tells the device: which, in which packets, and when."""

from dutperf.run.routing.announcing import announcements

__all__ = ["announcements"]
