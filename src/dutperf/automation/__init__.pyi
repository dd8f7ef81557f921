from .tester import Measured, Tester

__all__ = ["Measured", "Tester"]
