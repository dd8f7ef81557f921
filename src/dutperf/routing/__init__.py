"""A routing daemon beside the tester, which tells the device routes (RFC 2544 13).

    device <-> port of the tester <-> tap <-> BIRD, in a network namespace of its own

BIRD speaks OSPF or BGP as the hosts of the tester's own addresses, one for each port.
The engine hands to it what is no test traffic, and sends what it sends, in trials as
between them (slow path). Before each trial it tells the device all networks to which
frames go; after it, it is asked whether the device is still its neighbour.
"""
