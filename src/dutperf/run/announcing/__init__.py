"""What the tester tells the device in a trial, and asks it, beside the test frames."""

from dutperf.run.announcing.all_of_trial import announcements

__all__ = ["announcements"]
