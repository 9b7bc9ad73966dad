"""Record the digests anew: `.venv/bin/python -m tests.golden`."""

from tests.golden.decision_logs import FILE, POLICIES, digest

if __name__ == "__main__":
    FILE.write_text("".join(f"{digest(policy)}  {policy}\n" for policy in POLICIES))
    print(FILE.read_text(), end="")
