"""Grafana's dashboards: panels, queries, alerts, and the command that generates and pushes them."""
