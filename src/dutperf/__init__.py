"""dutperf: a network benchmarking tester for routers, translators and NAT gateways."""

__version__ = "0.1.0"
