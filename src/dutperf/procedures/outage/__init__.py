"""An outage (RFC 6201 4, RFC 2544 26.6): how long the device forwards nothing."""
