"""Nothing is written to Slurm: the code names only commands and requests that read."""

import ast

from tests.repository.tree import PRODUCT, files, name, nodes

READ = {"sacct", "sdiag", "sinfo", "sprio", "squeue", "sshare"}
"""Commands of Slurm that cannot change anything, whatever follows."""
SHOW = {"scontrol", "sacctmgr"}
"""Commands of Slurm that read only as `show`."""
WRITE = {"salloc", "sattach", "sbatch", "sbcast", "scancel", "scrontab", "srun", "strigger", "sreboot"}
SENDS = {"delete", "patch", "post", "put", "request"}
"""Methods of an HTTP session that may change what they ask."""

FOLLOWER = files("services")


def commands() -> list[tuple[str, list[str]]]:
    """Return each command line of Slurm, a tuple of strings or the arguments of a call, with its file."""
    lines = []
    for path in FOLLOWER:
        for node in nodes(path):
            parts = node.elts if isinstance(node, ast.Tuple) else node.args if isinstance(node, ast.Call) else []
            words = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            if words and isinstance(parts[0], ast.Constant) and words[0] in READ | SHOW:
                lines.append((name(path), words))
    return lines


def test_commands_that_can_write_are_asked_to_show() -> None:
    both = [words for _, words in commands() if words[0] in SHOW and len(words) > 1]
    assert len(both) >= 6
    for words in both:
        assert next(word for word in words[1:] if not word.startswith("-")) == "show", words


def test_no_command_that_writes_is_named() -> None:
    named = [
        (name(path), node.value)
        for path in files(*PRODUCT)
        for node in nodes(path)
        if isinstance(node, ast.Constant) and node.value in WRITE
    ]
    assert named == []


def test_requests_to_slurmrestd_only_get() -> None:
    (client,) = (path for path in FOLLOWER if path.name == "rest_client.py")
    called = {node.func.attr for node in nodes(client) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)}
    assert "get" in called
    assert not called & SENDS
