# Stand-ins for images of Docker Hub, for an engine that reaches none: see engine.sh.
ARG BASE
FROM ${BASE} AS kafka
RUN apt-get update -q && mkdir -p /usr/share/man/man1 \
    && apt-get install -y -q --no-install-recommends openjdk-17-jre-headless && rm -rf /var/lib/apt/lists/* \
    && groupadd -g 1000 appuser && useradd -u 1000 -g 1000 appuser \
    && mkdir -p /opt/kafka/config /opt/kafka/logs /var/lib/kafka/data /etc/kafka/secrets /etc/kafka/docker /mnt/shared/config \
    && printf 'process.roles=broker,controller\nnode.id=1\nlog.dirs=/tmp/logs\n' > /etc/kafka/docker/server.properties \
    && chown -R 1000:1000 /opt/kafka /var/lib/kafka /etc/kafka /mnt/shared
COPY --chmod=755 jars /opt/kafka/libs
COPY --chmod=755 log4j2.xml /etc/kafka/docker/log4j2.xml
COPY --chmod=755 kafka-run /etc/kafka/docker/run
VOLUME ["/etc/kafka/secrets", "/var/lib/kafka/data", "/mnt/shared/config"]
USER 1000:1000
CMD ["/etc/kafka/docker/run"]

FROM ${BASE} AS redis
RUN apt-get update -q && apt-get install -y -q --no-install-recommends redis-server redis-tools \
    && rm -rf /var/lib/apt/lists/* && mkdir -p /data && chown 999:999 /data
VOLUME /data
WORKDIR /data
CMD ["redis-server"]

FROM ${BASE} AS victoria-metrics
COPY --chmod=755 wget /usr/bin/wget
COPY --chmod=755 victoria-metrics /victoria-metrics-prod
ENTRYPOINT ["/victoria-metrics-prod"]

FROM ${BASE} AS vmauth
COPY --chmod=755 wget /usr/bin/wget
COPY --chmod=755 vmauth /vmauth-prod
ENTRYPOINT ["/vmauth-prod"]

FROM ${BASE} AS grafana
COPY --chmod=755 wget /usr/bin/wget
COPY --chmod=755 grafana.py /grafana.py
ENTRYPOINT ["python3", "-u", "/grafana.py"]
