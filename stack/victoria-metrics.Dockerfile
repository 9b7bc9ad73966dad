# The image has no data folder. Without one that belongs to this user, the volume would belong to root.
ARG VICTORIA_METRICS_VERSION
FROM victoriametrics/victoria-metrics:${VICTORIA_METRICS_VERSION}
RUN mkdir -p /victoria-metrics-data && chown 65534:65534 /victoria-metrics-data
USER 65534:65534
VOLUME /victoria-metrics-data
