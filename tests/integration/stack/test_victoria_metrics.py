"""VictoriaMetrics takes samples of 1996, keeps them through a kill, and scrapes if it is told to."""

import json
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from shadowtime.stack.servers import ServerError, VictoriaMetrics
from tests.support.metric_store import write
from tests.support.patience import PATIENCE
from tests.support.real_servers import require
from tests.support.server_control import flush, reset_rollup_cache

NEW_YEAR_1996 = 820_454_400


@pytest.fixture(autouse=True)
def _needs_victoria_metrics() -> None:
    require(VictoriaMetrics)


def test_a_sample_of_1996_survives_a_kill(tmp_path: Path) -> None:
    with VictoriaMetrics(tmp_path) as server:
        write(server, f'shadowtime_wait{{queue="all"}} 3 {NEW_YEAR_1996}000')
        flush(server)
        server.kill()
        server.start()
        assert query(server, "shadowtime_wait", NEW_YEAR_1996 + 60) == ["3"]


def test_samples_a_second_apart_are_all_kept(tmp_path: Path) -> None:
    with VictoriaMetrics(tmp_path) as server:
        write(server, "\n".join(f"wait {second} {NEW_YEAR_1996 + second}000" for second in range(10)))
        flush(server)
        assert query(server, "count_over_time(wait[1m])", NEW_YEAR_1996 + 30) == ["10"]


def test_old_samples_are_seen_after_a_reset_of_the_cache(tmp_path: Path) -> None:
    with VictoriaMetrics(tmp_path) as server:
        assert query(server, "wait", NEW_YEAR_1996 + 60) == []
        write(server, f"wait 5 {NEW_YEAR_1996}000")
        flush(server)
        reset_rollup_cache(server)
        assert query(server, "wait", NEW_YEAR_1996 + 60) == ["5"]


def test_it_scrapes_what_its_configuration_names(tmp_path: Path) -> None:
    with VictoriaMetrics(tmp_path / "scraped") as scraped:
        job = {
            "job_name": "itself",
            "scrape_interval": "100ms",
            "static_configs": [{"targets": [scraped.address]}],
        }
        config = tmp_path / "scrape.yml"
        config.write_text(json.dumps({"scrape_configs": [job]}))  # JSON is YAML
        offset = {"search.latencyOffset": "0s"}
        with VictoriaMetrics(tmp_path / "scraping", scrape_config=config, settings=offset) as scraping:
            deadline = time.monotonic() + PATIENCE
            while query(scraping, 'up{job="itself"}', int(time.time())) != ["1"]:
                assert time.monotonic() < deadline
                time.sleep(0.1)
                flush(scraping)


def test_a_server_that_is_down_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=r"victoria-metrics at 127\.0\.0\.1:\d+ does not answer /internal"):
        reset_rollup_cache(VictoriaMetrics(tmp_path))


def query(server: VictoriaMetrics, expression: str, at: int) -> list[str]:
    parameters = urllib.parse.urlencode({"query": expression, "time": at})
    with urllib.request.urlopen(f"{server.url}/api/v1/query?{parameters}", timeout=PATIENCE) as answer:
        return [row["value"][1] for row in json.load(answer)["data"]["result"]]
