"""Alert rules asked of a real VictoriaMetrics, about processes that answer, that do not, and that are gone."""

import json
import time
from pathlib import Path

from shadowtime.dashboards.alerts import ALERTS
from shadowtime.shared.metric_names import SCRAPE_JOB
from shadowtime.stack.compose.credentials import FLOW, SCRAPE, files, names
from shadowtime.stack.roles import roles
from shadowtime.stack.servers.ports import HOST, free_port
from shadowtime.stack.servers.servers import VictoriaMetrics
from tests.support.metric_store import ask, write
from tests.support.processes import wait_until
from tests.support.real_servers import require
from tests.support.server_control import flush

AT_ONCE = {"search.latencyOffset": "0s"}
RULES = {alert.uid: alert for alert in ALERTS}


def above(server: VictoriaMetrics, uid: str, label: str) -> dict[str, bool]:
    """Return of each series of a rule, by one of its labels, whether it is above its limit."""
    flush(server)
    rule = RULES[uid]
    found = ask(server, "query", query=rule.query, time=time.time())["result"]
    return {row["metric"][label]: float(row["value"][1]) > rule.limit for row in found}


def test_who_does_not_answer_or_is_gone_is_told_of(tmp_path: Path) -> None:
    require(VictoriaMetrics)
    with VictoriaMetrics(tmp_path / "scraped") as scraped:
        targets = {"alive": scraped.address, "dead": f"{HOST}:{free_port()}"}
        job = {
            "job_name": SCRAPE_JOB,
            "scrape_interval": "200ms",
            "static_configs": [{"targets": [address], "labels": {"worker": name}} for name, address in targets.items()],
        }
        config = tmp_path / "scrape.json"
        config.write_text(json.dumps({"scrape_configs": [job]}))
        with VictoriaMetrics(tmp_path / "scraping", scrape_config=config, settings=AT_ONCE) as server:
            hour_ago, days_ago = (int(time.time()) - ago for ago in (3_600, 3 * 86_400))
            write(server, f'up{{job="{SCRAPE_JOB}",worker="gone"}} 1 {hour_ago}000')
            write(server, f'up{{job="{SCRAPE_JOB}",worker="forgotten"}} 1 {days_ago}000')
            expected = {"alive": False, "dead": True, "gone": True}
            wait_until(lambda: above(server, "shadowtime-silent", "worker") == expected, "the rule says otherwise")


def test_containers_are_known_by_the_names_of_their_services(tmp_path: Path) -> None:
    """Their addresses change, and one that has ended has no name any more: then it is gone.

    Nobody misses a follower that there never was.
    """
    require(VictoriaMetrics)
    with VictoriaMetrics(tmp_path / "scraped") as scraped:
        known = roles(FLOW)
        found = json.loads(files(known, {name: name for name in names(known)})["victoria-metrics"][SCRAPE])
        workers, followers = found["scrape_configs"]
        for job in (workers, followers):
            job["scrape_interval"] = "200ms"
            job["scrape_timeout"] = "200ms"
        workers["dns_sd_configs"][0] |= {"names": ["localhost"], "port": scraped.port}
        config = tmp_path / SCRAPE
        config.write_text(json.dumps(found))
        with VictoriaMetrics(tmp_path / "scraping", scrape_config=config, settings=AT_ONCE) as server:
            expected = {"localhost": False}
            wait_until(lambda: above(server, "shadowtime-silent", "worker") == expected, "it has no name")


def test_a_stage_falls_behind_by_what_waits_for_all_its_workers(tmp_path: Path) -> None:
    """Each tells of its own partitions."""
    require(VictoriaMetrics)
    with VictoriaMetrics(tmp_path, settings=AT_ONCE) as server:
        now = int(time.time()) - 2
        lags = {"a": ("scheduler", 6_000), "b": ("scheduler", 6_000), "c": ("scoreboard", 6_000)}
        for worker, (stage, lag) in lags.items():
            write(server, f'shadowtime_worker_lag{{stage="{stage}",instance="{worker}"}} {lag} {now}000')
        expected = {"scheduler": True, "scoreboard": False}
        wait_until(lambda: above(server, "shadowtime-lag", "stage") == expected, "the rule says otherwise")


def test_a_follower_that_is_late_or_gone_is_told_of(tmp_path: Path) -> None:
    require(VictoriaMetrics)
    with VictoriaMetrics(tmp_path, settings=AT_ONCE) as server:
        now = int(time.time()) - 2
        behind = {"well": (5, now), "late": (700, now), "gone": (5, now - 3_600), "forgotten": (5, now - 3 * 86_400)}
        for cluster, (seconds, at) in behind.items():
            write(server, f'shadowtime_follow_behind_seconds{{followed="{cluster}"}} {seconds} {at}000')
            write(server, f'shadowtime_follow_contradicted{{followed="{cluster}"}} {int(cluster == "late")} {at}000')
        expected = {"well": False, "late": True, "gone": True}
        wait_until(lambda: above(server, "shadowtime-follower", "followed") == expected, "the rule says otherwise")
        assert above(server, "shadowtime-contradiction", "followed") == {"well": False, "late": True}
