"""One result file is enough to repeat its replays, and to see whether anything is different."""

import gzip
from pathlib import Path
from typing import Any

import orjson
import pytest
import typer

import shadowtime
from shadowtime._version import __version__
from shadowtime.replayer.campaign.reproduce_result import differences, reproduce_result
from shadowtime.replayer.commands.replay_options import Options
from shadowtime.replayer.commands.replay_run import compare_logs
from shadowtime.replayer.logs import BUNDLED, sha256_of
from shadowtime.shared.errors import SettingsError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the log and the result of a replay."""
    folder = tmp_path_factory.mktemp("cited")
    log, result = folder / "small.swf", folder / "result.json"
    log.write_bytes(gzip.decompress(BUNDLED.read_bytes()))
    compare_logs(
        Options(
            [f"{log}@128"],
            policy=["easy", "best"],
            jobs=150,
            seed=3,
            requests="doubled",
            json=result,
            report=folder / "page.html",
        )
    )
    return log, result


def document(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = orjson.loads(path.read_bytes())
    return read


def changed(made: tuple[Path, Path], tmp_path: Path, **fields: Any) -> Path:
    path = tmp_path / "changed.json"
    path.write_bytes(orjson.dumps(document(made[1]) | fields))
    return path


def test_a_document_says_where_it_comes_from(made: tuple[Path, Path]) -> None:
    log, result = made
    told = document(result)
    assert (told["shadowtime"], told["log_sha256"]) == (__version__, sha256_of(log))
    assert told["arguments"] == {
        "traces": [f"{log}@128"],
        "policy": ["easy", "best"],
        "jobs": 150,
        "seed": 3,
        "requests": "doubled",
    }
    alone = shadowtime.replay(shadowtime.read_log(log, 128, jobs=150, requests="doubled"), "easy", seed=3)
    assert told["policies"][0]["schedule_sha256"] == alone.schedule_sha256
    page = (result.parent / "page.html").read_text()
    for digest in (told["log_sha256"], told["policies"][1]["decisions_sha256"], __version__):
        assert digest in page


def test_it_is_reproduced(made: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    reproduce_result(made[1], Path())
    assert "reproduced: all " in capsys.readouterr().err


def test_a_size_of_other_logs_does_not_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, result = tmp_path / "small.swf", tmp_path / "sizes.json"
    log.write_bytes(gzip.decompress(BUNDLED.read_bytes()))
    compare_logs(Options([f"{log}@140", str(log)], processors=130, jobs=50, json=result))
    assert [of_log["processors"] for of_log in orjson.loads(result.read_bytes())] == [140, 130]
    reproduce_result(result, tmp_path)
    assert "figures and digests are the same" in capsys.readouterr().err


def test_a_log_elsewhere_is_taken_by_its_digest(made: tuple[Path, Path], tmp_path: Path) -> None:
    log, _ = made
    (tmp_path / "small.swf").write_bytes(log.read_bytes())
    moved = changed(made, tmp_path, arguments=document(made[1])["arguments"] | {"traces": ["/nowhere/small.swf@128"]})
    reproduce_result(moved, tmp_path)
    with pytest.raises(
        SettingsError, match=r"its log /nowhere/small\.swf is missing, also in folder /no: give its folder with --logs"
    ):
        reproduce_result(moved, Path("/no"))
    (tmp_path / "small.swf").write_text("; another\n")
    with pytest.raises(SettingsError, match=r"small.swf is another log: SHA-256 [0-9a-f]{16}…, expected [0-9a-f]{16}…"):
        reproduce_result(moved, tmp_path)


def test_the_folder_of_the_user_comes_before_the_path_in_the_file(made: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / made[0].name).write_text("; another\n")
    with pytest.raises(SettingsError, match="is another log"):
        reproduce_result(made[1], tmp_path)


def test_files_that_specs_name_are_in_the_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A reader of a paper has the one file that it cites, and no file of templates."""
    result, templates, site = tmp_path / "result.json", tmp_path / "own.templates", tmp_path / "site.toml"
    templates.write_text("mean(key=user,history=4)\nmean\n")
    site.write_text("weight_age = 1000\n")
    policies = [f"easy-sjbf:runtime=templates(set={templates})", f"slurm:site={site}"]
    compare_logs(Options(policy=policies, jobs=80, json=result))
    assert document(result)["files"] == {
        str(templates): "mean(key=user,history=4);mean",
        str(site): "(weight_age=1000)",
    }
    templates.write_text("mean(key=executable)\n")
    site.unlink()
    reproduce_result(result, Path())
    assert "reproduced: all " in capsys.readouterr().err
    with pytest.raises(SettingsError, match=r"site .*cannot be read"):
        compare_logs(Options(policy=policies, jobs=80))
    result.write_bytes(orjson.dumps(document(result) | {"files": 5}))
    with pytest.raises(SettingsError, match="files: expected an object of texts, found '5'"):
        reproduce_result(result, Path())


def test_the_speed_of_a_replay_is_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compare_logs(Options(policy=["easy"], jobs=20, speed="1000000000", json=tmp_path / "fast.json"))
    reproduce_result(tmp_path / "fast.json", Path())
    assert "reproduced: all " in capsys.readouterr().err


def test_a_figure_that_differs_is_named(
    made: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = document(made[1])["policies"]
    rows[1]["mean_wait"] += 1
    path = changed(made, tmp_path, policies=rows)
    with pytest.raises(typer.Exit):
        reproduce_result(path, Path())
    told = capsys.readouterr().err
    assert "policies.1.mean_wait: " in told
    assert "1 of " in told.splitlines()[-1]


def test_what_is_measured_is_no_difference() -> None:
    assert (
        differences({"shadowtime": "1", "cpu_seconds": 1, "a": [{"seconds": 2}]}, {"cpu_seconds": 3, "a": [{}]}) == []
    )


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"{", "found no JSON"),
        (b"1", "it lacks the fields shadowtime, arguments, cluster"),
        (b"[]", "it lacks the fields"),
        (b'{"shadowtime": "1", "cluster": "a", "arguments": 3}', "arguments: expected an object, found '3'"),
        (b'{"shadowtime": "1", "cluster": "a", "arguments": {"report": "x"}}', "arguments: unknown option 'report'"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_what_is_no_result_is_refused(contents: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    if contents is not None:
        path.write_bytes(contents)
    with pytest.raises(SettingsError, match=message):
        reproduce_result(path, Path())


def test_the_digest_of_a_schedule_does_not_depend_on_the_seed() -> None:
    """F17: two digests of decisions that differ prove nothing."""
    log = shadowtime.read_log(jobs=150)
    first, second = (shadowtime.replay(log, "easy", seed=seed) for seed in (0, 1))
    assert first.decisions_sha256 != second.decisions_sha256
    assert first.schedule_sha256 == second.schedule_sha256 != shadowtime.replay(log, "fcfs").schedule_sha256
