"""Settings that cannot work are told of at the start, by name, and secrets never."""

import pytest
from pydantic import SecretStr

from shadowtime.services.processes.metrics.run import session
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.streaming.settings import read_settings


@pytest.mark.parametrize("name", ["victoria-metrics-url", "grafana-url"])
@pytest.mark.parametrize("url", ["127.0.0.1:8428", "http://", "ftp://host", "http://host:99999", "http://[", "", "x y"])
def test_what_is_no_url_of_a_server_is_named(name: str, url: str) -> None:
    with pytest.raises(SettingsError, match=f"^--{name}: .*(is not a URL of a server|IPv6)"):
        read_settings([f"--{name}={url}"])


@pytest.mark.parametrize("nodes", ["a", "a:6379,b", "a:0", "a:66666", ":6379", "", "a:6379,"])
@pytest.mark.parametrize("scheme", ["redis+cluster", "rediss+cluster", "unix+cluster"])
def test_what_names_no_nodes_of_a_cluster_is_told(scheme: str, nodes: str) -> None:
    with pytest.raises(SettingsError, match=r"^--redis-url: .*: expected redis\+cluster://HOST"):
        read_settings([f"--redis-url={scheme}://{nodes}"])


@pytest.mark.parametrize("url", ["http://127.0.0.1:8428", "https://grafana.example.org/below/", "http://[::1]:3000"])
def test_urls_of_servers_are_taken(url: str) -> None:
    assert read_settings([f"--grafana-url={url}"]).grafana_url == url


@pytest.mark.parametrize("token", ["glsa_secret\nHost: evil", "glsa_secretü", "glsa_secret of mine", "\n"])
def test_a_token_that_no_header_can_bear_is_told_of_and_not_shown(token: str) -> None:
    with pytest.raises(SettingsError, match="is used as a token") as caught:
        session("http://127.0.0.1:3000", None, SecretStr(token), 1.0)
    assert "glsa_secret" not in str(caught.value)
