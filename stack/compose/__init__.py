"""What the containers of docker-compose.yml need: secrets, rights, environment, health."""
