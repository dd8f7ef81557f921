"""Many testbeds at once, on many hosts: jobs go to Dask workers that own testbeds."""
