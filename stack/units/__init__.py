"""The stack as systemd units: `shadowtime install-units`."""
