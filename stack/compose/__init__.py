"""Set-up of the containers of docker-compose.yml: secrets, rights, environment, health checks."""
