"""The digest in the output of skopeo, and the reason if there is none."""

from subprocess import CompletedProcess

import pytest

from shadowtime.stack.pin import PinError, digest_in

DIGEST = f"sha256:{'0' * 64}"
WARNING = "level=warning msg=old\n"


def test_a_warning_beside_a_digest_does_not_matter() -> None:
    assert digest_in(CompletedProcess([], 0, f"{DIGEST}\n", WARNING), "redis:7") == DIGEST


@pytest.mark.parametrize(
    ("done", "reason"),
    [
        (CompletedProcess([], 0, "sha256:0\n", WARNING), r"expected sha256:…, found 'sha256:0'"),
        (CompletedProcess([], 0, "", WARNING), "expected sha256:…, found ''"),
        (CompletedProcess([], 1, "", "manifest unknown\n"), "manifest unknown"),
        (CompletedProcess([], -9, "", ""), "it ended with status -9"),
    ],
)
def test_the_reason_is_that_of_the_failure(done: CompletedProcess[str], reason: str) -> None:
    with pytest.raises(PinError) as raised:
        digest_in(done, "redis:7")
    assert str(raised.value) == f"skopeo found no digest of redis:7: {reason}"
