"""Configuration: ``testbed.yaml`` and ``campaign.yaml`` as strict models.

Everything that can be known to be wrong before the first frame is refused here, with
file, line, key and remedy.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
