"""Record digests anew: `.venv/bin/python -m tests.conformance.golden [NAME…]`; without a name, all of them."""

import sys

from shadowtime.services.catalogue import REGISTRIES
from tests.conformance.golden.digests import LISTED, digest, file, recorded_digests

if __name__ == "__main__":
    wanted = sys.argv[1:]
    if unknown := set(wanted) - {name for _, name in LISTED}:
        sys.exit(f"no policy, predictor, adjuster or bounder is called {sorted(unknown)[0]}")
    for option in REGISTRIES:
        listed = [name for of, name in LISTED if of == option]
        recorded = recorded_digests(option)
        names = dict.fromkeys([name for name in recorded if name in listed] + listed)  # those known keep their lines
        kept = {name: recorded[name] for name in names if wanted and name not in wanted and name in recorded}
        file(option).write_text("".join(f"{kept.get(name) or digest(option, name)}  {name}\n" for name in names))
        print(file(option).read_text(), end="")
