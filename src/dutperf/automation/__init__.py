"""dutperf in other people's tests: measure, and assert on what was found.

``pytest_plugin`` has the fixture ``dutperf``, ``robot_library`` the keywords for Robot
Framework; both are a ``Tester``, which says it in Python (docs/automation.md).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
