"""Real devices under test in network namespaces, no hardware needed.

``up`` and ``down`` for a lab that is kept, ``session`` for one that lives as long as a
block. The engine runs in namespace ``tester``, the device in ``dut``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
