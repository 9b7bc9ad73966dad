"""The digest in the output of skopeo, and the reason if there is none."""

import pytest

from shadowtime.stack.pin import PinError, digest_in

DIGEST = f"sha256:{'0' * 64}"
WARNING = "level=warning msg=old\n"


def test_a_warning_beside_a_digest_does_not_matter() -> None:
    assert digest_in("redis:7", 0, f"{DIGEST}\n", WARNING) == DIGEST


@pytest.mark.parametrize(
    ("status", "output", "errors", "reason"),
    [
        (0, "sha256:0\n", WARNING, "expected sha256:…, found 'sha256:0'"),
        (0, "", WARNING, "expected sha256:…, found ''"),
        (1, "", "manifest unknown\n", "manifest unknown"),
        (-9, "", "", "it ended with status -9"),
    ],
)
def test_the_reason_is_that_of_the_failure(status: int, output: str, errors: str, reason: str) -> None:
    with pytest.raises(PinError) as raised:
        digest_in("redis:7", status, output, errors)
    assert str(raised.value) == f"skopeo found no digest of redis:7: {reason}"
