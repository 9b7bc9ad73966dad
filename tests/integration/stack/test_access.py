"""Secrets are made once, for their owner alone; certificates name this host and are made anew before they end."""

import hashlib
import ssl
import subprocess
from pathlib import Path

import pytest

from shadowtime.shared.errors import BusError
from shadowtime.shared.streaming.kafka import clients
from shadowtime.shared.streaming.settings import read_settings
from shadowtime.stack.compose.credentials import make
from shadowtime.stack.roles import ADMIN, KAFKA, REDIS, SUBSCRIBER, kafka_acls, redis_acl, roles, secret_names
from shadowtime.stack.servers import certificates
from shadowtime.stack.servers.access import Access
from shadowtime.stack.servers.certificates import certify
from tests.support.guarded import FLOW


def access(folder: Path, *, tls: bool = False) -> Access:
    return Access(folder / "access", roles(FLOW), tls)


def test_secrets_are_made_once_and_are_private(tmp_path: Path) -> None:
    made = access(tmp_path)
    made.prepare()
    first = made.passwords(KAFKA) | made.passwords(REDIS)
    files = list((made.folder / "secrets").iterdir())
    assert sorted(path.name for path in files) == sorted(secret_names(made.roles))
    assert len({path.read_text() for path in files}) == len(files)
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    (made.folder / "secrets").chmod(0o755)
    files[0].chmod(0o644)
    made.prepare()
    assert made.passwords(KAFKA) | made.passwords(REDIS) == first
    assert {path.stat().st_mode & 0o777 for path in (made.folder, made.folder / "secrets")} == {0o700}
    assert files[0].stat().st_mode & 0o777 == 0o600


def test_a_secret_that_a_power_cut_left_empty_is_made_again(tmp_path: Path) -> None:
    made = access(tmp_path)
    made.prepare()
    before = made.passwords(KAFKA)
    made.secret_file(ADMIN, KAFKA).write_text("")
    made.prepare()
    after = made.passwords(KAFKA)
    assert len(after[ADMIN]) > 40
    assert {name for name in after if after[name] != before[name]} == {ADMIN}
    (tmp_path / "kafka-live").touch()
    assert len(make(tmp_path, ["kafka-live"])["kafka-live"]) == 32


def test_no_role_of_a_stage_reaches_what_is_of_another() -> None:
    stages = [role for role in roles(FLOW) if role.keeps in FLOW]
    written = [topic for role in stages for topic in role.writes if topic != "dead-letters"]
    assert len(written) == len(set(written)) == len(FLOW)
    granted = kafka_acls(roles(FLOW))
    assert len(granted) == len(set(granted))
    assert not any(each.principal in (f"User:{ADMIN}", "User:*") for each in granted)
    assert {each.operation for each in granted} == {"READ", "WRITE", "DESCRIBE"}
    assert [each.principal for each in granted if each.pattern != "LITERAL"] == [f"User:{SUBSCRIBER}"]


def test_redis_is_told_no_password(tmp_path: Path) -> None:
    made = access(tmp_path)
    made.prepare()
    told = redis_acl(made.roles, made.digests(REDIS))
    for password in made.passwords(REDIS).values():
        assert password not in told
        assert hashlib.sha256(password.encode()).hexdigest() in told
    assert told.startswith("user default off ")


def test_certificates_are_for_this_host_and_nobody_can_sign_more(tmp_path: Path) -> None:
    made = access(tmp_path, tls=True)
    made.prepare()
    first = made.certificate.read_bytes()
    names = {path.name for path in made.folder.iterdir()}
    assert names == {"secrets", "ca.pem", "server.pem", "server.key"}
    assert {path.stat().st_mode & 0o077 for path in made.folder.iterdir()} == {0}
    context = made.context()
    assert context is not None
    assert context.verify_mode == ssl.CERT_REQUIRED
    checked = ["openssl", "verify", "-x509_strict", "-CAfile", str(made.authority), "-verify_ip", "127.0.0.1"]
    subprocess.run([*checked, str(made.certificate)], check=True, capture_output=True)
    made.prepare()
    assert made.certificate.read_bytes() == first


def test_a_certificate_that_soon_ends_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as short:
        short.setattr(certificates, "DAYS", 2)
        certify(tmp_path)
    first = (tmp_path / "ca.pem").read_bytes()
    certify(tmp_path)
    second = (tmp_path / "ca.pem").read_bytes()
    certify(tmp_path)
    assert first != second == (tmp_path / "ca.pem").read_bytes()


def test_nobody_is_asked_for_the_password_of_a_key(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-subj", "/CN=x", "-passout", "pass:secret"]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    settings = read_settings([f"--kafka-certificate-file={certificate}", f"--kafka-key-file={key}"])
    with pytest.raises(BusError, match="kafka_key_file is encrypted; expected a key without a password"):
        clients.ssl_context(settings)
