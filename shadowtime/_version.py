"""The version of the package, where nothing else is imported."""

__version__ = "0.1.0"
