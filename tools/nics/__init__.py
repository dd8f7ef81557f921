"""dutperf in a virtual machine, on NICs that QEMU emulates: ``make test-nics``.

The guest is the tester, on Debian 13, with dutperf by its .deb. Two of its NICs are
cabled to each other, two more to a router: the namespace that QEMU runs in.
"""
