"""Many testbeds at once, on many hosts: jobs go to workers that own testbeds."""
