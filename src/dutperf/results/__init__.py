"""Stored results: the directory of a run, its files, and how to read them again."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
