"""Nothing is written to Slurm: the code names only commands and requests that read."""

import ast

from tests.repository.tree import PRODUCT, files, name, nodes

SHOW = {"scontrol", "sacctmgr"}
"""Commands of Slurm that read only as `show`."""
WRITE = {"salloc", "sattach", "sbatch", "sbcast", "scancel", "scrontab", "srun", "strigger", "sreboot"}
SENDS = {"delete", "patch", "post", "put", "request"}
"""Methods of an HTTP session that may change what they ask."""

FOLLOWER = files("services")


def test_commands_that_can_write_are_asked_to_show() -> None:
    """A command line is a tuple of strings, or the arguments of a call."""
    parts = [
        node.elts if isinstance(node, ast.Tuple) else node.args
        for path in FOLLOWER
        for node in nodes(path)
        if isinstance(node, ast.Tuple | ast.Call)
    ]
    lines = [[part.value for part in line if isinstance(part, ast.Constant)] for line in parts]
    asked = [words for words in lines if len(words) > 1 and words[0] in SHOW]
    assert len(asked) >= 6
    for words in asked:
        assert next(word for word in words[1:] if not str(word).startswith("-")) == "show", words


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
    calls = (node.func for node in nodes(client) if isinstance(node, ast.Call))
    called = {function.attr for function in calls if isinstance(function, ast.Attribute)}
    assert "get" in called
    assert not called & SENDS
