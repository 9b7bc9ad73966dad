"""Real servers without Docker: Kafka, Redis and VictoriaMetrics, installed and run as child processes."""
