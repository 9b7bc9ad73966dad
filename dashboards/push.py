"""Push of folder, data source, dashboards, home page and alert rules into a running Grafana. It may run repeatedly."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from grafana_client.api import GrafanaApi
from grafana_client.client import GrafanaClientError, GrafanaException, GrafanaUnauthorizedError
from grafana_client.model import PersonalPreferences
from niquests.exceptions import RequestException

from shadowtime.shared.errors import PushError, reason_of
from shadowtime.shared.streaming import bearer_token, http_url

PROVISIONING = Path(__file__).parent / "provisioning"
FOLDER = "shadowtime"
SOURCE = "victoria-metrics"
HOME = "shadowtime-home"
FORBIDDEN, NOT_FOUND = 403, 404
TIMEOUT = 10.0
NO_GRAFANA = "the answer is not from Grafana; check --url"


class Pushed(NamedTuple):
    """The result for one object: `created`, `changed`, `as it was`, or the reason why it was left unchanged."""

    what: str
    outcome: str


class Push:
    """A client of one Grafana, by its URL and the token of a service account.

    Parameters
    ----------
    url
        Root of Grafana. A URL with a user name or password is rejected.
    token
        Token of a service account that may edit dashboards, data sources and alert rules.
    store
        URL of VictoriaMetrics, as Grafana reaches it.

    Raises
    ------
    PushError
        If a URL or the token is malformed.
    """

    def __init__(self, url: str, token: str, store: str) -> None:
        try:
            self._url = http_url(url, "https://grafana.example.org")
            self._store = http_url(store)
        except ValueError as error:
            raise PushError(str(error)) from None

        if "@" in urlsplit(url).netloc:
            raise PushError(f"{url!r} contains a user; leave it out, because the token identifies the user")
        try:
            authorization = bearer_token(token)
        except ValueError as error:
            raise PushError(f"expected a token of a service account: {error}") from None

        self._grafana = GrafanaApi.from_url(url, credential=authorization, timeout=TIMEOUT)

    def run(self, report: Callable[[Pushed], None]) -> None:
        """Bring everything to the state of the committed files. `report` is called with the result for each object.

        Raise `PushError` if Grafana is unreachable or rejects the token or an object. Changes already reported stay in
        effect.
        """
        try:
            report(self._folder())
            report(self._source())
            for path in sorted((PROVISIONING / "dashboards").glob("*.json")):
                report(self._dashboard(json.loads(path.read_text())))
            report(self._home())
            (group,) = json.loads((PROVISIONING / "alerting" / "alerts.json").read_text())["groups"]
            for rule in group["rules"]:
                report(self._rule(rule | {"folderUID": FOLDER, "ruleGroup": group["name"], "orgID": group["orgId"]}))
        except GrafanaUnauthorizedError:
            raise PushError(f"Grafana at {self._url} rejects the token; create a token of a service account") from None
        except GrafanaException as error:
            if error.status_code == FORBIDDEN:
                reason = f"denies this token a request: {error.message}; make its service account an admin"
                raise PushError(f"Grafana at {self._url} {reason}") from None
            raise PushError(f"Grafana at {self._url} cannot be used: {error.message}") from None
        except (RequestException, OSError, ValueError) as error:
            raise PushError(f"Grafana at {self._url} cannot be used: {_first_line(error)}") from None
        finally:
            self._grafana.client.s.close()

    def _folder(self) -> Pushed:
        if _lookup(lambda: self._grafana.folder.get_folder(FOLDER), "uid") is not None:
            return Pushed("folder Shadowtime", "as it was")
        self._grafana.folder.create_folder("Shadowtime", FOLDER)
        return Pushed("folder Shadowtime", "created")

    def _source(self) -> Pushed:
        wanted = {
            "name": "VictoriaMetrics",
            "uid": SOURCE,
            "type": "prometheus",
            "access": "proxy",
            "url": self._store,
            "jsonData": {"httpMethod": "POST", "prometheusType": "Prometheus", "timeInterval": "5s"},
        }
        what = f"data source {wanted['name']}"
        there = _lookup(lambda: self._grafana.datasource.get_datasource_by_uid(SOURCE), "uid")
        if there is None:
            self._grafana.datasource.create_datasource(wanted)
            return Pushed(what, "created")
        if holds(there, wanted):
            return Pushed(what, "as it was")
        self._grafana.datasource.update_datasource_by_uid(SOURCE, there | wanted)
        return Pushed(what, "changed")

    def _dashboard(self, wanted: dict[str, Any]) -> Pushed:
        what = f"dashboard {wanted['title']}"
        there = _lookup(lambda: self._grafana.dashboard.get_dashboard(wanted["uid"]), "dashboard", "meta")
        kept = {name: value for name, value in wanted.items() if name != "schemaVersion"}  # Grafana raises it
        if there is not None and holds(there["dashboard"], kept) and there["meta"].get("folderUid") == FOLDER:
            return Pushed(what, "as it was")
        self._grafana.dashboard.update_dashboard(
            {
                "dashboard": wanted | {"id": None},
                "folderUid": FOLDER,
                "overwrite": True,
                "message": "shadowtime dashboards",
            }
        )
        return Pushed(what, "created" if there is None else "changed")

    def _home(self) -> Pushed:
        """Make our home dashboard the home page of the organisation, unless it has chosen another."""
        what, organization = "home of the organisation", self._grafana.organization
        there = organization.get_preferences()
        if not isinstance(there, dict):
            raise ValueError(NO_GRAFANA)
        chosen = there.get("homeDashboardUID")
        if chosen:
            return Pushed(what, "as it was" if chosen == HOME else f"left at dashboard {chosen}")
        organization.patch_preferences(PersonalPreferences(homeDashboardUID=HOME))
        return Pushed(what, "created")

    def _rule(self, wanted: dict[str, Any]) -> Pushed:
        what = f"alert rule {wanted['title']}"
        rules = self._grafana.alertingprovisioning
        there = _lookup(lambda: rules.get_alertrule(wanted["uid"]), "uid")
        if there is None:
            rules.create_alertrule(wanted, disable_provenance=True)
            return Pushed(what, "created")
        if holds(there, wanted):
            return Pushed(what, "as it was")
        rules.update_alertrule(wanted["uid"], wanted, disable_provenance=True)
        return Pushed(what, "changed")


def _lookup(ask: Callable[[], Any], *fields: str) -> Any:
    """Return an object from Grafana; None if it does not exist.

    Raise `ValueError` if the answer lacks one of the `fields`: then the server is not a Grafana.
    """
    try:
        there = ask()
    except GrafanaClientError as error:
        if error.status_code == NOT_FOUND:
            return None
        raise

    if not isinstance(there, dict) or not all(name in there for name in fields):  # for example a login page
        raise ValueError(NO_GRAFANA)
    return there


def holds(there: Any, wanted: Any) -> bool:
    """Return whether `there` has everything in `wanted`. Other fields are ignored, because Grafana adds fields.

    >>> holds({"a": 1, "version": 7, "list": [{"b": 2, "id": 1}]}, {"a": 1, "list": [{"b": 2}]}), holds([1], [1, 2])
    (True, False)
    """
    if isinstance(wanted, dict):
        return isinstance(there, dict) and all(name in there and holds(there[name], wanted[name]) for name in wanted)
    if isinstance(wanted, list):
        same = isinstance(there, list) and len(there) == len(wanted)
        return same and all(map(holds, there, wanted))
    return bool(there == wanted)


def _first_line(error: Exception) -> str:
    """Return the first line of the system's message at the root of an error, or else of the error's own message."""
    root: BaseException = error
    while (behind := root.__cause__ or root.__context__) is not None:
        root = behind
    reason = root.strerror if isinstance(root, OSError) else None
    return (reason or reason_of(error)).splitlines()[0]
