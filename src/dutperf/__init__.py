"""dutperf: a network benchmarking tester for routers, translators and NAT gateways."""

__version__ = "1.0.0"
