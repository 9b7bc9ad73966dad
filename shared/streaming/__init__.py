"""All that talks to Kafka, Redis or HTTP: workers and their state, readers of the stream, servers of pages."""
