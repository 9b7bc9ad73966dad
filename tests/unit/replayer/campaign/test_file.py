"""A campaign's file: what is wrong with one is told by file, key and value; those that are shipped are right."""

from pathlib import Path

import pytest

from shadowtime.replayer.campaign.file import read_campaign
from shadowtime.replayer.campaign.grid import grid_of
from shadowtime.replayer.campaign.logs import ARCHIVE, CampaignLog, find_logs
from shadowtime.replayer.campaign.reproduce import CAMPAIGNS
from shadowtime.replayer.campaign.studies import STUDIES
from shadowtime.replayer.logs import BUNDLED
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.errors import SettingsError, TraceError
from tests.support.campaign_files import GOOD, write
from tests.support.small_logs import job, write_log


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name = ", "Invalid value (at end of document)"),
        ('name = "c"\ntitle = "t"\n', "logs: it is missing"),
        (GOOD + "logz = 3\n", "logz: there is no such key; did you mean 'logs'? known: name, title, logs, "),
        (GOOD.replace('"c"', '"a b"'), "name: expected letters, digits"),
        (GOOD + 'policies = ["easy", "esay"]\n', "policies.1.spec: unknown policy 'esay'"),
        (
            GOOD + 'policies = [{ spec = "easy", seed = 1 }]\n',
            "policies.0.seed: there is no such key; did you mean 'seeds'? known: spec, label, requests, seeds",
        ),
        (GOOD + 'policies = ["easy", "easy"]\n', "policies: the name 'easy' is used twice"),
        (GOOD + 'runtime = ["nobody"]\n', "runtime.0: unknown run-time predictor 'nobody'"),
        (GOOD + 'mode = "clsoed"\n', "mode: expected one of closed, recorded; found 'clsoed'"),
        (GOOD + "seeds = [-1]\n", "seeds.0: expected a number greater than or equal to 0; found '-1'"),
        (GOOD + 'seeds = ["one"]\n', "seeds.0: expected a whole number"),
        (GOOD + 'speedup = "fast"\n', "speedup: --speedup 'fast'"),
        (
            GOOD + 'columns = [{ key = "mean_wait", of = "a", change_from = "b" }]\n',
            "columns.0: of and change_from exclude each other",
        ),
        (
            GOOD.replace('["KTH"]', '[{ log = "KTH", put_back = "first=3" }]'),
            "logs.0.put_back: put-back: last: it is missing",
        ),
        (GOOD + 'columns = ["mean_weight"]\n', "columns.0.key: unknown figure"),
        (GOOD + 'columns = [{ key = "mean_wait", unit = "weeks" }]\n', "columns.0.unit: expected 's'"),
        (GOOD + '[paper.CTC]\neasy = { "mean wait" = 1 }\n', "paper.CTC: unknown log; known: KTH"),
        (GOOD + "[paper.KTH]\neasy = { cost = 1 }\n", "paper.KTH.easy.cost: unknown column; known: "),
        (GOOD + f"seeds = [{'9' * 5_000}]\n", "Exceeds the limit (4300 digits)"),
        (GOOD + f"seeds = {'[' * 5_000}\n", "maximum recursion depth exceeded"),
        (GOOD + f"jobs = {2**70}\n", "jobs: expected a number less than or equal to 16777216"),
        (GOOD + 'sizes = "used"\n', "sizes: expected 'requested' or 'allocated'; found 'used'"),
        (
            GOOD.replace('"KTH"', '{ log = "KTH", months = [0] }'),
            "logs.0.months.0: expected a number greater than or equal to 1; found '0'",
        ),
        (GOOD + "load = 0\n", "load: expected a number greater than or equal to 0.01; found '0'"),
        (GOOD + 'mode = "recorded"\nload = 2\n', "load: jobs start as recorded in recorded mode"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, told: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(SettingsError) as raised:
        read_campaign(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert told in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nope\.toml: cannot be read: No such file or directory"):
        read_campaign(tmp_path / "nope.toml")


def some_log(label: str) -> CampaignLog:
    return CampaignLog(label, label, "/nowhere", "0" * 64, None, "drop", "as-logged", None)


def test_a_log_at_another_load_is_another_cell(tmp_path: Path) -> None:
    text = GOOD.replace('"KTH"', '"KTH", { log = "KTH", load = 2 }', 1)
    (tmp_path / "KTH-SP2-1996-2.swf").write_text("")
    campaign = read_campaign(write(tmp_path, text))
    cells = grid_of(campaign, find_logs(campaign, tmp_path))
    assert [(cell.log.label, cell.log.load) for cell in cells] == [("KTH", 1.0), ("KTH, load 2.0", 2.0)]


def test_the_grid_is_logs_by_rows_by_copies_by_seeds(tmp_path: Path) -> None:
    text = """
policies = ["fcfs", { label = "E", spec = "easy", seeds = [7] }]
runtime = ["requested", "last-two"]
seeds = [0, 1]
copies = 1
keep_jobs = true
"""
    campaign = read_campaign(write(tmp_path, GOOD + text))
    cells = grid_of(campaign, [some_log("KTH")])
    assert [(cell.label, cell.copy, cell.seed) for cell in cells[:5]] == [
        ("fcfs, requested", 0, 0),
        ("fcfs, requested", 0, 1),
        ("fcfs, requested", 1, 0),
        ("fcfs, requested", 1, 1),
        ("fcfs, last-two", 0, 0),
    ]
    assert len(cells) == 12
    assert len({cell.digest for cell in cells}) == 12
    assert [cell.keeps_jobs for cell in cells[:4]] == [True, False, False, False]
    assert cells[8].name == "KTH, E, requested, seed 7"


def test_a_label_changes_no_digest_and_everything_else_does(tmp_path: Path) -> None:
    plain = read_campaign(write(tmp_path, GOOD))
    (cell,) = grid_of(plain, [some_log("KTH")])
    others = ['policies = [{ label = "E", spec = "easy:plan=predicted" }]', 'policies = ["fcfs"]', "seeds = [1]"]
    others += ['runtime = ["last-two"]', 'adjustment = ["auto"]', 'wait_bound = ["bmbp"]', "moldable = false"]
    others += ['mode = "recorded"', 'speedup = "amdahl:serial=0.1"']
    same, *different = (
        grid_of(read_campaign(write(tmp_path, f"{GOOD}{text}\n")), [some_log("KTH")])[0].digest for text in others
    )
    assert same == cell.digest
    assert len({cell.digest, *different}) == len(others)


def test_two_cells_that_are_the_same_are_named(tmp_path: Path) -> None:
    text = 'policies = ["easy", { label = "again", spec = "easy:plan=predicted" }]\n'
    with pytest.raises(
        SettingsError, match="cell 'KTH, again, seed 0' is given twice: 'KTH, easy, seed 0' is the same"
    ):
        grid_of(read_campaign(write(tmp_path, GOOD + text)), [some_log("KTH")])


def test_figures_of_a_paper_for_a_row_that_there_is_not_are_named(tmp_path: Path) -> None:
    text = '[paper.KTH]\nesay = { "mean wait" = 5 }\n'
    with pytest.raises(SettingsError, match=r"paper.KTH: unknown row 'esay'; did you mean 'easy'\? known: easy"):
        grid_of(read_campaign(write(tmp_path, GOOD + text)), [some_log("KTH")])


def test_the_bundled_log_has_a_name(tmp_path: Path) -> None:
    (log,) = find_logs(read_campaign(write(tmp_path, GOOD.replace("KTH", "bundled"))), tmp_path)
    assert (log.label, log.path) == ("bundled", str(BUNDLED))


def test_a_share_of_a_row_that_there_is_not_is_named(tmp_path: Path) -> None:
    text = 'columns = [{ key = "mean_wait", of = "esay" }]\npolicies = ["easy", "fcfs"]\n'
    with pytest.raises(
        SettingsError, match=r"'mean wait': of: unknown row 'esay'; did you mean 'easy'\? known: easy, fcfs"
    ):
        grid_of(read_campaign(write(tmp_path, GOOD + text)), [some_log("KTH")])


def test_a_missing_log_says_where_it_can_be_had_and_no_other_is_taken(tmp_path: Path) -> None:
    campaign = read_campaign(write(tmp_path, GOOD))
    write_log(tmp_path, job(1))
    with pytest.raises(TraceError) as raised:
        find_logs(campaign, tmp_path)
    assert str(raised.value) == (
        f"log KTH is missing: there is no KTH-SP2-1996-2.swf.gz in {tmp_path}; "
        "download it from https://www.cs.huji.ac.il/labs/parallel/workload/l_kth_sp2/"
    )
    for name in ("nul\\u0000", "x" * 5_000):
        with pytest.raises(TraceError, match="is missing"):
            find_logs(read_campaign(write(tmp_path, GOOD.replace("KTH", name))), tmp_path)
    campaign = read_campaign(write(tmp_path, GOOD.replace("KTH", "mine.swf")))
    with pytest.raises(TraceError, match=r"log mine\.swf is missing: it is neither a file in .* nor one of bundled"):
        find_logs(campaign, tmp_path)


def test_an_optional_log_is_left_out_where_its_file_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = GOOD.replace('"KTH"', '"KTH", { log = "SDSC-DS", optional = true }', 1)
    assert "optional" in text
    campaign = read_campaign(write(tmp_path, text))
    (tmp_path / "KTH-SP2-1996-2.swf").write_text("")
    assert [log.label for log in find_logs(campaign, tmp_path)] == ["KTH"]
    assert "does not have them: SDSC-DS" in capsys.readouterr().err
    (tmp_path / "KTH-SP2-1996-2.swf").unlink()
    with pytest.raises(TraceError, match="log KTH is missing"):
        find_logs(campaign, tmp_path)


SHIPPED = sorted(CAMPAIGNS.glob("*.toml"))


def test_there_is_one_of_each_paper() -> None:
    assert {path.stem[:2] for path in SHIPPED} >= {f"P{paper}" for paper in range(5)}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_campaign_that_is_shipped_is_right(path: Path) -> None:
    """Its rows and columns are those that the paper's figures name, its cells are different, its logs have a page."""
    campaign = read_campaign(path)
    assert campaign.name == path.stem
    cells = grid_of(campaign, [some_log(each.called) for each in campaign.logs])
    assert {each.log.partition("@")[0] for each in campaign.logs if not each.log.endswith(".swf.gz")} <= ARCHIVE.keys()
    assert all(each.optional for each in campaign.logs if each.log.endswith(".swf.gz"))
    labels = {cell.label for cell in cells}
    for column in campaign.columns:
        assert column.of is None or column.of in labels
    for rows in campaign.paper.values():
        for row in rows:
            assert row in labels or any(column.key.count("*") for column in campaign.columns), row


def test_docs_name_every_campaign_that_is_shipped() -> None:
    page = (ROOT / "docs" / "campaigns.md").read_text()
    assert not [name for name in (*(path.stem for path in SHIPPED), *STUDIES) if f"`{name}`" not in page]


@pytest.mark.parametrize("table", [1, 2, 3])
def test_the_tables_of_bounds_have_all_17_rows_of_the_paper(table: int) -> None:
    campaign = read_campaign(CAMPAIGNS / f"P2-table-{table}.toml")
    assert sum(len(rows) for rows in campaign.paper.values()) == 17
    assert sum(len(rows) for rows in campaign.bold.values()) == (17 if table == 3 else 0)
