"""The identity of a visitor: tokens of portals, logins passed on by a proxy, and settings that cannot be right."""

from pathlib import Path

import pytest
from multidict import CIMultiDict

from shadowtime.services.processes.ask.gate import EVERYBODY, Gate, Portal, Viewer, VisitorAccess, require_own
from shadowtime.shared.errors import SettingsError, Unanswerable

TOKEN = "t" * 32
LOGIN = {"sees": "own", "login_header": "X-Remote-User", "proxies": ("127.0.0.1", "10.1.0.0/16", "::1")}


def gate(**access: object) -> Gate:
    portals = {"ood": Portal(token_file=Path("x"), origins=("https://ood.example.org",))}
    return Gate(VisitorAccess(**{"portals": portals, **access}), {"ood": TOKEN})  # type: ignore[arg-type]


def bearer(token: str = TOKEN) -> CIMultiDict[str]:
    return CIMultiDict({"authorization": f"Bearer {token}"})


def test_without_settings_everybody_sees_all() -> None:
    assert Gate().viewer(CIMultiDict(), "192.0.2.1") == EVERYBODY


@pytest.mark.parametrize("peer", ["127.0.0.1", "10.1.2.3", "::1", "::ffff:10.1.2.3"])
def test_a_login_counts_from_a_stated_address(peer: str) -> None:
    headers = CIMultiDict({"x-remote-user": "alice"})
    assert gate(**LOGIN).viewer(headers, peer) == Viewer("own", "alice")
    assert gate(**LOGIN, managers=("alice",)).viewer(headers, peer) == Viewer("all", "alice")


@pytest.mark.parametrize("peer", ["192.0.2.1", "10.2.0.1", "::2", "", "nonsense"])
def test_a_login_from_elsewhere_is_refused(peer: str) -> None:
    with pytest.raises(Unanswerable, match="behind the login") as error:
        gate(**LOGIN).viewer(CIMultiDict({"X-Remote-User": "alice"}), peer)
    assert error.value.status == 403


def test_a_login_beside_one_of_the_visitors_own_is_refused() -> None:
    """As from a proxy that adds its header to those that the visitor has sent, instead of replacing them."""
    headers = CIMultiDict([("X-Remote-User", "root"), ("x-remote-user", "alice")])
    with pytest.raises(Unanswerable, match="passed on X-Remote-User 2 times; let it replace this header") as error:
        gate(**LOGIN, managers=("root",)).viewer(headers, "127.0.0.1")
    assert error.value.status == 401


def test_a_proxy_without_a_login_is_refused() -> None:
    with pytest.raises(Unanswerable, match="passed on no login"):
        gate(**LOGIN).viewer(CIMultiDict(), "127.0.0.1")


def test_a_portal_names_the_user_it_asks_for() -> None:
    assert gate(**LOGIN).viewer(bearer(), "192.0.2.1", "bob") == Viewer("own", "bob")
    assert gate(sees="all").viewer(bearer(), "192.0.2.1") == Viewer("all", None)
    with pytest.raises(Unanswerable, match="user: is missing"):
        gate(sees="own").viewer(bearer(), "192.0.2.1")
    with pytest.raises(Unanswerable, match="the token of a portal is missing"):
        gate(sees="own").viewer(CIMultiDict(), "127.0.0.1")


@pytest.mark.parametrize("token", ["", "u" * 32, "t" * 31, "\udcff", "ü" * 32])
def test_an_unknown_token_is_refused_also_where_everybody_sees_all(token: str) -> None:
    with pytest.raises(Unanswerable, match="this token is not known"):
        gate().viewer(bearer(token), "127.0.0.1")


def test_questions_about_others_are_refused() -> None:
    require_own(Viewer("own", "alice"), "alice")
    require_own(Viewer("own", "alice"), None)
    require_own(EVERYBODY, "bob")
    for rule in ("own", "account"):
        with pytest.raises(Unanswerable, match="your own jobs"):
            require_own(Viewer(rule, "alice"), "bob")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sees = 'mine'", "sees: expected 'all', 'account' or 'own'"),
        ("sees = 'own'", "to identify visitors"),
        ("login_header = 'X-User'", "needs proxies"),
        ("proxies = ['10.0.0.1/8']", "has host bits set"),
        ("login_header = 'a b'\nproxies = ['::1']", "login_header"),
        ("other = 1", "other"),
        ("sees = ", "Invalid value"),
        ("[portals.p]\ntoken_file = '{folder}/short'", "expected at least 16 characters"),
        ("[portals.p]\ntoken_file = '{folder}/missing'", "missing: cannot be read: No such file or directory$"),
        ("[portals.p]\ntoken_file = '{folder}/long'\norigins = ['ood.example.org/']", "expected an origin such as"),
        ("[portals.p]\ntoken_file = '{folder}/long'\n[portals.q]\ntoken_file = '{folder}/long'", "the same token"),
    ],
)
def test_settings_that_cannot_be_right_are_refused(tmp_path: Path, text: str, message: str) -> None:
    for name, content in (("access.toml", text.replace("{folder}", str(tmp_path))), ("short", "x"), ("long", TOKEN)):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o600)
    with pytest.raises(SettingsError, match=message):
        Gate.read(tmp_path / "access.toml")


def test_settings_that_others_can_change_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "access.toml"
    path.write_text("sees = 'all'")
    path.chmod(0o666)
    with pytest.raises(SettingsError, match="other users can change"):
        Gate.read(path)


def test_origins_are_compared_as_browsers_write_them() -> None:
    origins = ("https://OOD.example.org:443", "http://h:80", "http://h:8080", "https://h:80", "http://[::1]:80")
    portal = Portal(token_file=Path("x"), origins=origins)
    assert portal.origins == ("https://ood.example.org", "http://h", "http://h:8080", "https://h:80", "http://[::1]")
