"""Samples of the scoreboard to VictoriaMetrics, decisions to Grafana Live."""
