"""Conformance suites: what the project's own policies, predictors and sources keep, for those of others.

One line in a file of tests tries a plug-in, each property in a test of its own::

    TestMine = conformance("policies", "mine")
"""

try:
    import hypothesis as _hypothesis
    import pytest
except ModuleNotFoundError as missing:
    raise ImportError(f"shadowtime.testing takes {missing.name}: pip install 'shadowtime[testing]'") from missing

pytest.register_assert_rewrite(
    *(f"{__name__}.{module}" for module in ("policies", "pipeline", "predictors", "sources", "chain"))
)

from shadowtime.testing.suites import conformance  # noqa: E402

__all__ = ["conformance"]
