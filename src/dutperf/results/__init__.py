"""dutperf."""
