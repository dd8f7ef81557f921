from .measured import Measured
from .tester import Tester

__all__ = ["Measured", "Tester"]
