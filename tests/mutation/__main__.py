"""How many mutants the tests notice: `python -m tests.mutation [--mutants N] [--minutes N] [--json FILE]`.

cosmic-ray makes the mutants of the modules in `modules.toml`. A key draws a sample of them, so the sample is the same
while the modules are. It is tried in the order of the draw: what there is no time for is as random as the rest.
"""

import argparse
import json
import re
import sys
import time
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from shadowtime.shared.cli.paths import ROOT
from tests.mutation.configuration import Configuration, configuration
from tests.mutation.trial import copied, processes, trial


def drawn(seed: int, mutation: Any) -> bytes:
    """Return where a mutation comes in the draw."""
    text = f"{seed}:{mutation.module_path.name}:{mutation.operator_name}:{mutation.occurrence}"
    return blake2b(text.encode(), digest_size=8).digest()


def sample(database: Any, told: Configuration) -> list[Any]:
    """Return the work items to try, in order; the others count as skipped, as cosmic-ray's own filters have it."""
    from cosmic_ray.work_item import WorkerOutcome, WorkResult

    excluded = re.compile("|".join(told.exclude) or "$.")
    items = [(each, each.mutations[0]) for each in database.work_items]
    able = [(each, mutation) for each, mutation in items if not excluded.match(mutation.operator_name)]
    able.sort(key=lambda each: drawn(told.seed, each[1]))
    chosen = [each for each, _ in able[: told.mutants]]
    names = {each.job_id for each in chosen}
    left = [each.job_id for each, _ in items if each.job_id not in names]
    database.set_multiple_results(left, WorkResult(worker_outcome=WorkerOutcome.SKIPPED))
    print(f"{len(chosen)} of {len(able)} mutants of {len(told.tests)} modules, drawn by {told.seed}", flush=True)
    return chosen


def outcomes(folder: Path, told: Configuration) -> list[dict[str, Any]]:
    """Try the sample in copies of the tree below a folder, and return what became of each mutant that was tried."""
    from cosmic_ray.commands import init
    from cosmic_ray.work_db import use_db

    deadline = time.time() + 60 * told.minutes
    copies = [copied(ROOT, folder / str(number)) for number in range(told.processes)]
    found: list[dict[str, Any]] = []
    with use_db(folder / "session.sqlite") as database, processes(copies) as pool:
        init(list(told.tests), database, {})
        chosen = sample(database, told)

        under_way = [
            (item, pool.submit(trial, item.mutations, told.tests[item.mutations[0].module_path], deadline))
            for item in chosen
        ]
        for item, future in under_way:
            if (result := future.result()) is None:
                continue
            database.set_result(item.job_id, result)
            found.append(told_of(item.mutations[0], result))
            if found[-1]["outcome"] != "killed":
                print(f"{found[-1]['outcome']}: {found[-1]['mutant']}\n{found[-1]['diff']}", flush=True)
    return found


def told_of(mutation: Any, result: Any) -> dict[str, Any]:
    """Return a mutant and what became of it, as plain values."""
    outcome = result.test_outcome.value if result.test_outcome else result.worker_outcome.value
    lines = [each for each in (result.diff or "").splitlines() if re.match(r"[+-](?!\+\+|--)", each)]
    operator, where = mutation.operator_name.removeprefix("core/"), mutation.definition_name or "the module"
    return {
        "mutant": f"{mutation.module_path}:{mutation.start_pos[0]} {operator} in {where}",
        "module": str(mutation.module_path),
        "outcome": outcome,
        "diff": "\n".join(lines),
    }


def summary(told: Configuration, found: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """Return the score with what it is of, and the survivors.

    >>> told = Configuration(43, 3, 45, 2, (), {})
    >>> found = [{"outcome": "killed", "module": "a.py"}, {"outcome": "survived", "module": "a.py", "mutant": "-"}]
    >>> summary(told, found, 60.0)["score"], summary(told, found, 60.0)["tried"]
    (0.5, 2)
    """
    valid = [each for each in found if each["outcome"] in ("killed", "survived")]
    killed = sum(each["outcome"] == "killed" for each in valid)
    modules: dict[str, dict[str, int]] = {}
    for each in sorted(valid, key=lambda each: str(each["module"])):
        of = modules.setdefault(each["module"], {"killed": 0, "tried": 0})
        of["killed"] += each["outcome"] == "killed"
        of["tried"] += 1
    return {
        "seed": told.seed,
        "drawn": told.mutants,
        "tried": len(valid),
        "killed": killed,
        "score": round(killed / len(valid), 3) if valid else None,
        "minutes": round(seconds / 60, 1),
        "modules": modules,
        "survivors": [each for each in valid if each["outcome"] == "survived"],
    }


def main() -> int:
    """Try the mutants, print the score and write it, if a file is named."""
    told = configuration(ROOT)
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--mutants", type=int, default=told.mutants, metavar="N")
    parser.add_argument("--minutes", type=float, default=told.minutes, metavar="N")
    parser.add_argument("--processes", type=int, default=told.processes, metavar="N")
    parser.add_argument("--seed", type=int, default=told.seed, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the score and the survivors are written")
    options = vars(parser.parse_args())
    file = options.pop("json")
    told = Configuration(**{**vars(told), **options})
    began = time.monotonic()
    with TemporaryDirectory(prefix="mutation-") as folder:
        result = summary(told, outcomes(Path(folder), told), time.monotonic() - began)
    if file is not None:
        file.write_text(json.dumps(result, indent=2) + "\n")
    print(f"score {result['score']}: {result['killed']} of {result['tried']} killed, {result['minutes']} minutes")
    return 0 if result["tried"] else 1


if __name__ == "__main__":
    sys.exit(main())
