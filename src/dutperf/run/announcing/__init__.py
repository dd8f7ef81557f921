"""What the tester tells the device in a trial, and asks it, beside the test frames."""

from dutperf.run.announcing.all_of_trial import announcements
from dutperf.run.announcing.queries import with_community, without_community

__all__ = ["announcements", "with_community", "without_community"]
