"""What lies in a VictoriaMetrics, asked as Grafana asks it."""

import json
import urllib.error
import urllib.parse
import urllib.request
from math import isclose
from typing import Any

from shadowtime.stack.servers.servers import VictoriaMetrics
from tests.support.patience import PATIENCE
from tests.support.server_control import flush


def ask(server: VictoriaMetrics, path: str, **parameters: str | float) -> Any:
    """Return the data of an answer of the Prometheus query interface; a refusal is told with its reason."""
    body = urllib.parse.urlencode(parameters).encode()
    try:
        with urllib.request.urlopen(f"{server.url}/api/v1/{path}", data=body, timeout=PATIENCE) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{parameters}: {error.read().decode()}") from None


def exported(
    server: VictoriaMetrics, selector: str = '{__name__=~"shadowtime_.*"}'
) -> dict[str, list[tuple[int, float]]]:
    """Return every sample of every series, by the series' labels; times in Unix milliseconds."""
    flush(server)
    query = urllib.parse.urlencode({"match[]": selector})
    found: dict[str, list[tuple[int, float]]] = {}
    with urllib.request.urlopen(f"{server.url}/api/v1/export?{query}", timeout=PATIENCE) as answer:
        for line in answer:
            row = json.loads(line)
            samples = found.setdefault(json.dumps(row["metric"], sort_keys=True), [])
            samples.extend(zip(row["timestamps"], row["values"], strict=True))
    return {series: sorted(samples) for series, samples in found.items()}


def alike(these: dict[str, list[tuple[int, float]]], those: dict[str, list[tuple[int, float]]]) -> bool:
    """Return whether they are the same samples, as far as the store keeps digits."""
    return these.keys() == those.keys() and all(
        [time for time, _ in these[series]] == [time for time, _ in those[series]]
        and all(isclose(a, b, rel_tol=1e-9) for (_, a), (_, b) in zip(these[series], those[series], strict=True))
        for series in these
    )


def write(server: VictoriaMetrics, lines: str) -> None:
    with urllib.request.urlopen(
        f"{server.url}/api/v1/import/prometheus", data=lines.encode(), timeout=PATIENCE
    ) as answer:
        assert answer.status == 204
