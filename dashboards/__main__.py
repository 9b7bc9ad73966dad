"""Dashboards and alert rules: `shadowtime dashboards`."""

from shadowtime.shared.start_up import run

if __name__ == "__main__":
    run("shadowtime.dashboards.command_line")
