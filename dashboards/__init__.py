"""Grafana dashboards: panels, queries, alerts, and the commands that generate and push them."""
