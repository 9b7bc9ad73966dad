"""JSON and CSV for people go through `shared/output.py`, where no text is a formula or is obeyed by a terminal."""

import re

import pytest

from tests.repository.tree import PRODUCT, files, name

FORBIDDEN = {
    "CSV": re.compile(r"csv\.(writer|DictWriter|write_csv)\("),
    "JSON": re.compile(r"(stdout(\.buffer)?\.write|typer\.echo|print)\(.*(dumps|as_json|model_dump_json)\("),
}
ALLOWED = {"shared/output.py": {"CSV"}, "services/processes/command_line.py": {"JSON"}}  # AsyncAPI has our own words


@pytest.mark.parametrize("kind", FORBIDDEN)
def test_one_module_writes(kind: str) -> None:
    writers = {name(path) for path in files(*PRODUCT) if FORBIDDEN[kind].search(path.read_text())}
    assert writers == {path for path, kinds in ALLOWED.items() if kind in kinds}
