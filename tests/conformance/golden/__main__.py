"""Record the digests anew: `.venv/bin/python -m tests.conformance.golden`."""

from shadowtime.services.catalogue import REGISTRIES
from tests.conformance.golden.digests import LISTED, digest, file, recorded_digests

if __name__ == "__main__":
    for option in REGISTRIES:
        listed = [name for of, name in LISTED if of == option]
        known = [name for name in recorded_digests(option) if name in listed]  # they keep their lines
        file(option).write_text("".join(f"{digest(option, name)}  {name}\n" for name in dict.fromkeys(known + listed)))
        print(file(option).read_text(), end="")
