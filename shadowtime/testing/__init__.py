"""Conformance suites: the properties of the project's own policies, predictors and sources, as tests for plug-ins.

One line in a test file tests a plug-in, with one test for each property::

    TestMine = conformance("policies", "mine")
"""

try:
    import hypothesis as _hypothesis
    import pytest
except ModuleNotFoundError as missing:
    raise ImportError(f"shadowtime.testing needs {missing.name}: pip install 'shadowtime[testing]'") from missing

pytest.register_assert_rewrite(
    *(f"{__name__}.{module}" for module in ("policies", "pipeline", "predictors", "sources", "chain"))
)

from shadowtime.testing.suites import conformance  # noqa: E402

__all__ = ["conformance"]
