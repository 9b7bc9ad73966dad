"""A command finds the settings of its role, and no password goes to a server that it is not for."""

import os
from pathlib import Path

import pytest

from shadowtime.shared.errors import SettingsError
from shadowtime.shared.streaming import role_settings
from shadowtime.shared.streaming.role_settings import FOLLOW_PORT, VARIABLE
from shadowtime.shared.streaming.settings import read_settings, settings_of_other_kafka

LINES = """# written by make stack
SHADOWTIME_KAFKA_BOOTSTRAP=127.0.0.1:7001
SHADOWTIME_KAFKA_SECURITY_PROTOCOL=SASL_PLAINTEXT
SHADOWTIME_KAFKA_USERNAME=live
SHADOWTIME_KAFKA_PASSWORD_FILE={folder}/kafka-live
SHADOWTIME_REDIS_URL=redis://127.0.0.1:7002/0
SHADOWTIME_REDIS_USERNAME=live
SHADOWTIME_REDIS_PASSWORD_FILE={folder}/redis-live
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("SHADOWTIME_")]:
        monkeypatch.delenv(name)
    (tmp_path / "kafka-live").write_text("secret of kafka\n")
    (tmp_path / "redis-live").write_text("secret of redis\n")
    (tmp_path / "live.env").write_text(LINES.format(folder=tmp_path))
    (tmp_path / "live.env").chmod(0o600)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return tmp_path


def passwords(*flags: str) -> tuple[str | None, str | None]:
    settings = read_settings(list(flags), "live")
    found = (settings.kafka_password, settings.redis_password)
    kafka, redis = (None if each is None else each.get_secret_value() for each in found)
    return kafka, redis


def test_a_role_finds_its_servers_and_its_passwords(folder: Path) -> None:
    settings = read_settings([], "live")
    assert settings.kafka_bootstrap == "127.0.0.1:7001"
    assert settings.redis_url == "redis://127.0.0.1:7002/0"
    assert passwords() == ("secret of kafka", "secret of redis")
    assert "secret of" not in repr(settings)


def test_without_a_role_no_file_is_read(folder: Path) -> None:
    assert read_settings([]).kafka_username is None


def test_a_file_can_be_named_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(folder / "live.env"))
    assert read_settings([], "scheduler").kafka_username == "live"


@pytest.mark.parametrize(
    "flag",
    ["--kafka-bootstrap=kafka.example.org:9092", "--kafka-username=other", "--kafka-security-protocol=PLAINTEXT"],
)
def test_a_password_goes_to_no_other_server_and_to_no_other_user(folder: Path, flag: str) -> None:
    assert passwords(flag) == (None, "secret of redis")
    assert passwords(flag, "--redis-url=redis://127.0.0.1:6379/0") == (None, None)


def test_the_environment_wins_as_flags_do(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHADOWTIME_KAFKA_BOOTSTRAP", "kafka.example.org:9092")
    assert passwords() == (None, "secret of redis")
    monkeypatch.setenv("SHADOWTIME_KAFKA_BOOTSTRAP", "127.0.0.1:7001")  # what the file says, too
    assert passwords() == ("secret of kafka", "secret of redis")


def test_a_follower_has_a_port_of_its_own_unless_told_otherwise(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "follow.env").write_text("SHADOWTIME_KAFKA_USERNAME=follow\n")
    (folder / "follow.env").chmod(0o600)
    assert read_settings([], "follow").web_port == FOLLOW_PORT
    assert read_settings([], "follow").kafka_username == "follow"
    assert read_settings([], "live").web_port == 6066
    monkeypatch.setenv("SHADOWTIME_WEB_PORT", "6064")
    assert read_settings([], "follow").web_port == 6064
    assert read_settings(["--web-port=0"], "follow").web_port == 0
    monkeypatch.delenv("SHADOWTIME_WEB_PORT")
    (folder / "follow.env").write_text("SHADOWTIME_WEB_PORT=6063\n")
    assert read_settings([], "follow").web_port == 6063


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_finding_16_a_file_that_others_may_open_is_refused(folder: Path, mode: int) -> None:
    (folder / "live.env").chmod(mode)
    with pytest.raises(SettingsError, match=r"live\.env is open to other users, so it is not read; run: chmod 600"):
        read_settings([], "live")


def test_a_file_in_a_folder_that_others_can_write_is_refused(folder: Path) -> None:
    folder.chmod(0o777)
    with pytest.raises(SettingsError, match=r"live\.env is not read: other users can change .*; run: chmod go-w"):
        read_settings([], "live")


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_finding_16_a_file_of_another_user_is_refused(folder: Path) -> None:
    os.chown(folder / "live.env", 12345, -1)
    with pytest.raises(SettingsError, match=r"live\.env belongs to user \d+, so it is not read"):
        read_settings([], "live")


def test_a_role_without_a_file_is_told_of_where_one_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r"scheduler\.env: No such file"):
        read_settings([], "scheduler")
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr("shadowtime.shared.streaming.role_settings.FOLDER", folder / "no-stack-runs")
    assert read_settings([], "scheduler").kafka_username is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("SHADOWTIME_KAFKA_PASSWORT=x", "unknown setting kafka_passwort"),
        ("export KAFKA_PASSWORD=x", "line 1: expected SHADOWTIME_NAME=VALUE"),
        ("SHADOWTIME_KAFKA_PASSWORD_FILE=/nowhere", "kafka_password_file: /nowhere: No such file"),
        ("SHADOWTIME_PARTITIONS=none", "setting partitions: "),
    ],
)
def test_what_is_wrong_with_a_file_is_named(folder: Path, line: str, said: str) -> None:
    (folder / "live.env").write_text(line + "\n")
    with pytest.raises(SettingsError, match=said) as caught:
        read_settings([], "live")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("server", ["kafka", "redis", "victoria-metrics", "grafana"])
def test_a_password_may_lie_in_a_file(tmp_path: Path, server: str) -> None:
    (tmp_path / "password").write_text("secret\n")
    flag = f"--{server}-password-file={tmp_path / 'password'}"
    found = getattr(read_settings([flag]), f"{server.replace('-', '_')}_password")
    assert found.get_secret_value() == "secret"
    with pytest.raises(SettingsError, match="are both set; set only one of them"):
        read_settings([flag, f"--{server}-password=other"])
    (tmp_path / "password").write_text("")
    with pytest.raises(SettingsError, match=f"{server.replace('-', '_')}_password_file: .*password is empty"):
        read_settings([flag])


def test_an_empty_variable_counts_as_not_set(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv(VARIABLE, str(folder))
    for name in ("KAFKA_BOOTSTRAP", "REDIS_URL", "REDIS_PASSWORD_FILE", "GRAFANA_URL", "WEB_PORT", "KAFKA_CA_FILE"):
        monkeypatch.setenv(f"SHADOWTIME_{name}", "")
    settings = read_settings(role="live")
    assert (settings.kafka_bootstrap, settings.redis_url) == ("127.0.0.1:7001", "redis://127.0.0.1:7002/0")
    assert settings.redis_password is not None
    assert (settings.grafana_url, settings.web_port, settings.kafka_ca_file) == (None, 6066, None)
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setattr(role_settings, "FOLDER", tmp_path_factory.mktemp("none"))
    assert read_settings(role="live").kafka_bootstrap == "127.0.0.1:9092"


def test_the_login_for_another_kafka_is_in_its_own_file_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own login is never sent to the Kafka of the cluster, wherever it is set."""
    monkeypatch.setenv("SHADOWTIME_KAFKA_USERNAME", "ours")
    monkeypatch.setenv("SHADOWTIME_KAFKA_PASSWORD", "secret")
    monkeypatch.setenv("SHADOWTIME_KAFKA_SECURITY_PROTOCOL", "SASL_PLAINTEXT")
    plain = settings_of_other_kafka("slurm:9092", None)
    assert (plain.kafka_security_protocol, plain.kafka_username, plain.kafka_password) == ("PLAINTEXT", None, None)

    path = folder / "slurm.env"
    path.write_text("SHADOWTIME_KAFKA_USERNAME=reader\nSHADOWTIME_KAFKA_BOOTSTRAP=other:1\nSHADOWTIME_WEB_PORT=1\n")
    path.chmod(0o600)
    own = settings_of_other_kafka("slurm:9092", path)
    assert (own.kafka_bootstrap, own.kafka_username, own.kafka_password) == ("slurm:9092", "reader", None)

    path.write_text("SHADOWTIME_KAFKA_USER=reader\n")
    with pytest.raises(SettingsError, match="unknown setting kafka_user; did you mean 'kafka_username'"):
        settings_of_other_kafka("slurm:9092", path)
    path.chmod(0o644)
    with pytest.raises(SettingsError, match="is open to other users"):
        settings_of_other_kafka("slurm:9092", path)
    with pytest.raises(SettingsError, match=r"none\.env: cannot be read: No such file"):
        settings_of_other_kafka("slurm:9092", folder / "none.env")
