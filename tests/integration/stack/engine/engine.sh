#!/usr/bin/env bash
# A Docker engine of its own on a Debian machine, as root, and stand-ins for the images that no registry gives here:
#
#   engine.sh up FOLDER       install packages, start an engine in FOLDER, print its DOCKER_HOST and DOCKER_CONFIG
#   engine.sh images FOLDER   make the stand-ins, under the names that docker-compose.yml wants; Kafka's jars must be there
#                             (`shadowtime stack install`; the tests bring them by themselves)
#   engine.sh down FOLDER     end the engine (its data stay in FOLDER/data)
#
# The engine lives in a network namespace of its own: ports it publishes are seen with
# `nsenter -t $(cat FOLDER/run/docker.pid) -n curl …`. The stand-ins have the real Kafka (jars of Maven, started by its own
# wrapper), Redis and VictoriaMetrics (packages of Debian); grafana.py is no Grafana, and says so.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
CHECKOUT=$(cd "$HERE/../../../.." && pwd)
VERB=$1
mkdir -p "$2"
B=$(cd "$2" && pwd)
export DOCKER_HOST=unix://$B/run/docker.sock DOCKER_CONFIG=$B/config DOCKER_BUILDKIT=1

trixie() { # of the newer Debian, without telling the system of it
  apt-get -q -o Dir::Etc::sourcelist="$B/apt/trixie.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::State::lists="$B/apt/lists" -o Dir::Cache="$B/apt/cache" -o APT::Sandbox::User=root "$@"
}

packages() {
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
    docker.io iptables slirp4netns debootstrap iproute2
  mkdir -p "$B/apt/lists/partial" "$B/apt/cache/archives/partial" "$B/config"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main" \
    >"$B/apt/trixie.list"
  trixie update
  (cd "$B/apt" && trixie download docker-compose docker-buildx victoria-metrics)
  for each in "$B"/apt/*.deb; do dpkg -x "$each" "$B/apt/unpacked"; done
  ln -sfn "$B/apt/unpacked/usr/libexec/docker/cli-plugins" "$B/config/cli-plugins"
}

start() {
  mkdir -p "$B/run"
  rm -f "$B/run/docker.pid" "$B/run/ns.pid"
  setsid unshare -n -m --propagation private bash -c "
    echo \$\$ >$B/run/ns.pid
    ip link set lo up
    sysctl -qw net.ipv4.ip_forward=1
    until ip a show tap0 2>/dev/null | grep -q 'inet '; do sleep .2; done
    exec dockerd -H $DOCKER_HOST --data-root $B/data --exec-root $B/run/exec --pidfile $B/run/docker.pid \
      --storage-driver overlay2 --ip6tables=false --mtu 1400 --dns \$(awk '/^nameserver/{print \$2;exit}' /etc/resolv.conf)
  " >"$B/run/engine.log" 2>&1 </dev/null &
  until [ -s "$B/run/ns.pid" ]; do sleep .2; done
  setsid slirp4netns --configure --mtu=1400 "$(cat "$B/run/ns.pid")" tap0 >"$B/run/slirp.log" 2>&1 </dev/null &
  echo $! >"$B/run/slirp.pid"
  for _ in $(seq 180); do
    docker version >/dev/null 2>&1 && return
    sleep 1
  done
  tail -5 "$B/run/engine.log" >&2
  exit 1
}

of() { # the version that .env.example pins
  sed -n "s/^$1=//p" "$CHECKOUT/.env.example"
}

images() {
  local base python=python:$(of PYTHON_VERSION) kafka=apache/kafka:$(of KAFKA_VERSION)
  local jars=${SHADOWTIME_SERVERS:-$CHECKOUT/.servers}/kafka-$(of KAFKA_VERSION)
  [ -d "$jars" ] || { echo "an engine of one's own needs Kafka's jars in $jars: run shadowtime stack install" >&2; exit 1; }
  base=$B/base
  if ! docker image inspect "$python" >/dev/null 2>&1; then
    rm -rf "$base"
    debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv bookworm "$base" \
      http://deb.debian.org/debian >"$B/debootstrap.log"
    ln -sf python3 "$base/usr/bin/python"
    cp /etc/ssl/certs/ca-certificates.crt "$base/etc/ssl/certs/ca-certificates.crt" # a proxy's may be among them
    tar -C "$base" -c . | docker import --change "ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt" - "$python"
    rm -rf "$base"
  fi
  rm -rf "$B/context" # an old engine knows one context
  mkdir -p "$B/context"
  cp "$HERE"/{kafka-run,wget,grafana.py} "$CHECKOUT/stack/kafka/log4j2.xml" "$B/apt/unpacked/usr/bin/"{victoria-metrics,vmauth} "$B/context"
  cp -r "$jars" "$B/context/jars"
  stand_in() { # TARGET TAG
    docker buildx build -q --load --build-arg BASE="$python" --target "$1" -t "$2" -f "$HERE/stand-ins.Dockerfile" "$B/context"
  }
  stand_in kafka "$kafka"
  stand_in redis "redis:$(of REDIS_VERSION)"
  stand_in victoria-metrics "victoriametrics/victoria-metrics:$(of VICTORIA_METRICS_VERSION)"
  stand_in vmauth "victoriametrics/vmauth:$(of VMAUTH_VERSION)"
  stand_in grafana "grafana/grafana:$(of GRAFANA_VERSION)"
}

down() {
  [ ! -e "$B/run/docker.pid" ] || kill "$(cat "$B/run/docker.pid")" || true
  for _ in $(seq 60); do
    [ -e "$B/run/docker.pid" ] || break
    sleep 1
  done
  [ ! -e "$B/run/slirp.pid" ] || kill "$(cat "$B/run/slirp.pid")" 2>/dev/null || true
}

case $VERB in
up)
  [ "$(id -u)" = 0 ] || { echo "an engine of one's own takes root" >&2; exit 1; }
  command -v apt-get >/dev/null || { echo "an engine of one's own comes from Debian's packages; there is no apt-get" >&2; exit 1; }
  packages >&2
  start >&2
  echo "DOCKER_HOST=$DOCKER_HOST"
  echo "DOCKER_CONFIG=$DOCKER_CONFIG"
  ;;
images) images ;;
down) down ;;
*) exit 2 ;;
esac
