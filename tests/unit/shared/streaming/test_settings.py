"""Settings that cannot work are told of at the start, by name, and secrets never."""

import pytest
from pydantic import SecretStr

from shadowtime.services.processes.metrics.run import session
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.streaming.kafka import clients
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


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("redis-url", "redis://:pass/word@host:6379/0"),
        ("redis-url", "redis://:12/word@host:6379/0"),  # 12 looks like a port
        ("redis-url", "redis://:word#pass@host:6379"),
        ("redis-url", "redis://host:6379?password=word"),
        ("redis-url", "redis+cluster://:wo/rd@host:6379"),
        ("victoria-metrics-url", "http://me:12/word@host:8428"),
        ("grafana-url", "https://me:word?@host"),
    ],
)
def test_a_password_in_a_url_is_never_shown(name: str, url: str) -> None:
    with pytest.raises(SettingsError, match=f"^--{name}: the URL contains a password") as caught:
        read_settings([f"--{name}={url}"])
    assert not any(part in str(caught.value) for part in ("word@", "wo/rd", "host"))


@pytest.mark.parametrize("option", ["decode_responses=True", "socket_timeout=x", "ssl_certfile=a", "foo"])
def test_an_option_of_the_redis_url_that_would_break_clients_is_named(option: str) -> None:
    with pytest.raises(SettingsError, match=f"has the option '{option.partition('=')[0]}'; expected no options but db"):
        read_settings([f"--redis-url=redis://127.0.0.1:6379/0?{option}"])
    with pytest.raises(SettingsError, match="is not a URL of Redis"):
        read_settings(["--redis-url=redis://127.0.0.1:6379?db=first"])
    assert read_settings(["--redis-url=rediss://h?ssl_certfile=a"]).redis_url == "rediss://h?ssl_certfile=a"
    assert read_settings(["--redis-url=unix:///run/redis.sock?db=2"]).redis_url == "unix:///run/redis.sock?db=2"


@pytest.mark.parametrize("servers", ["", ",", "h:abc", "h:99999", "h:-1", "a..b:9092", f"{'x' * 70}:9092", "[::1:9092"])
def test_what_names_no_brokers_is_told(servers: str) -> None:
    with pytest.raises(SettingsError, match=r"^--kafka-bootstrap: expected brokers as HOST:PORT,HOST:PORT, found"):
        read_settings([f"--kafka-bootstrap={servers}"])


def test_a_login_at_kafka_without_a_password_is_told() -> None:
    flags = ["--kafka-security-protocol=SASL_SSL", "--kafka-username=me"]
    with pytest.raises(SettingsError, match="needs a login, as the setting kafka_security_protocol is SASL_SSL"):
        clients.connection(read_settings(flags))


@pytest.mark.parametrize("token", ["glsa_secret\nHost: evil", "glsa_secretü", "glsa_secret of mine", "\n"])
def test_a_token_that_no_header_can_bear_is_told_of_and_not_shown(token: str) -> None:
    with pytest.raises(SettingsError, match="is used as a token") as caught:
        session("http://127.0.0.1:3000", None, SecretStr(token), 1.0)
    assert "glsa_secret" not in str(caught.value)
