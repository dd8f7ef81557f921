"""A run: cells to jobs, jobs to trials, trials to the journal, and resuming from it.

What is measured and why is ``procedures``' business; here it happens, once, in order.
"""
