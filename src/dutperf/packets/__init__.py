"""What a tester tells a device and asks it, beside test frames: packets as bytes."""
