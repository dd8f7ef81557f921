"""System recovery (RFC 2544 26.5): how long losses outlast an overload."""
