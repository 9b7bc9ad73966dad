"""What the first container of docker-compose.yml makes: every secret once, each file for one user."""

import hashlib
import os
import stat
from pathlib import Path

import pytest

from shadowtime.stack.compose import credentials
from shadowtime.stack.compose.credentials import (
    FLOW,
    KEPT,
    TLS,
    TOKEN,
    USERS,
    add_certificates,
    files,
    give,
    make,
    names,
)
from shadowtime.stack.roles import roles, seals

ROLES = roles(FLOW)


def test_secrets_are_made_once_for_the_owner_alone(tmp_path: Path) -> None:
    made = make(tmp_path, names(ROLES))
    assert len(set(made.values())) == len(made) == len(names(ROLES))
    assert all(len(secret) == 32 for secret in made.values())
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    assert make(tmp_path, names(ROLES)) == made


def test_all_are_renewed_but_what_grafana_keeps_itself(tmp_path: Path) -> None:
    first = make(tmp_path, names(ROLES))
    second = make(tmp_path, names(ROLES), renew=True)
    assert {name for name in first if first[name] == second[name]} == {*KEPT, *seals(ROLES)}


def test_each_container_gets_its_own_and_no_other(tmp_path: Path) -> None:
    """A secret is with whoever shows it and whoever checks it, and with nobody else."""
    made = make(tmp_path, names(ROLES))
    given = files(ROLES, made)
    for name, secret in made.items():
        holders = {container for container, texts in given.items() if any(secret in text for text in texts.values())}
        server, _, role = name.partition("-")
        if server == "kafka":
            checks = {"kafka"} if role == "admin" else {"rights"}
            assert holders - {"rights"} - checks <= {role, {"subscriber": "reader"}.get(role)}
        elif server == "redis":
            assert holders <= {"redis" if role == "health" else {"ask": "reader"}.get(role, role)}
            assert hashlib.sha256(secret.encode()).hexdigest() in given["redis"]["users.acl"]
        else:
            assert 1 <= len(holders) <= 2


def test_files_can_be_read_and_not_written_by_one_user(tmp_path: Path) -> None:
    give(tmp_path, files(ROLES, make(tmp_path, names(ROLES))))
    for container, user in USERS.items():
        assert stat.S_IMODE((tmp_path / container).stat().st_mode) == 0o755
        for path in (tmp_path / container).iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o400
            assert path.stat().st_uid == (user if os.geteuid() == 0 else os.geteuid())
    assert stat.S_IMODE((tmp_path / TOKEN).stat().st_mode) == 0o750


def test_what_is_no_longer_meant_for_a_container_goes(tmp_path: Path) -> None:
    contents = files(ROLES, make(tmp_path, names(ROLES)))
    give(tmp_path, contents)
    (tmp_path / "scheduler" / "old").write_text("secret")
    (tmp_path / TOKEN / "token").write_text("glsa_1")
    give(tmp_path, contents)
    assert sorted(path.name for path in (tmp_path / "scheduler").iterdir()) == ["scheduler.env"]
    assert (tmp_path / TOKEN / "token").exists()


def test_each_server_has_a_certificate_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "MOUNTED", tmp_path)
    contents = files(ROLES, make(tmp_path, names(ROLES)))
    add_certificates(tmp_path, contents)
    again = {name: dict(texts) for name, texts in contents.items()}
    add_certificates(tmp_path, again)
    assert again == contents
    assert {name for name, texts in contents.items() if "server.key" in texts} == set(TLS)
    assert len({contents[server]["server.pem"] for server in TLS}) == len(TLS)
    assert (tmp_path / "ca.pem").read_text().count("BEGIN CERTIFICATE") == len(TLS)
    assert stat.S_IMODE((tmp_path / "ca.pem").stat().st_mode) == 0o444


def test_the_command_makes_what_is_missing_and_renews_on_demand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[dict[str, dict[str, str]]] = []
    monkeypatch.setattr(credentials, "MADE", tmp_path)
    monkeypatch.setattr(credentials, "give", lambda folder, contents: given.append(contents))
    for options in ([], [], ["--renew"]):
        monkeypatch.setattr("sys.argv", ["credentials", *options])
        credentials.main()
    first, again, renewed = given
    assert first == again != renewed
    assert (
        capsys.readouterr().out.splitlines()[0] == f"{len(names(ROLES))} secrets are there, for {len(USERS)} containers"
    )
