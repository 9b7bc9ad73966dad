"""How long a test waits for what should happen, in seconds."""

PATIENCE = 150.0  # only what hangs uses it up: a machine under load may stand still for half a minute
