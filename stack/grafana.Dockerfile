# Data source, dashboards and alerts are part of the image, whatever the rights of the checkout are.
ARG GRAFANA_VERSION
FROM grafana/grafana:${GRAFANA_VERSION}
COPY --chmod=755 . /etc/grafana/provisioning
USER 472:0
