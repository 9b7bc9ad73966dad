"""One store with results for all tests of dashboards."""

from collections.abc import Iterator

import pytest

from shadowtime.stack.servers.servers import VictoriaMetrics
from tests.support.dashboard_store import Filled, fill
from tests.support.real_servers import require


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    require(VictoriaMetrics)
    with VictoriaMetrics(tmp_path_factory.mktemp("store"), settings={"search.latencyOffset": "0s"}) as store:
        yield from fill(store, 250)
