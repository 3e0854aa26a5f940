#!/usr/bin/env bash
# down.sh: deletes the cluster and stops the dockerd that up.sh started. Nothing of them stays running, mounted or
# in the firewall; what was built stays in the cache.
#   --keep-docker   our dockerd goes on running, for whoever builds images with it
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
START=$(now)
case ${1:-} in "" | --keep-docker) ;; *) die "usage: down.sh [--keep-docker]" ;; esac

delete_cluster() {
  local nodes
  # After a power cut the nodes are there, stopped, and only a dockerd can remove them.
  if [ "$1" = own ] && [ -d "$DOCKER_STATE" ]; then eval "$("$KIND_DIR/docker.sh" up)"; fi
  docker version >/dev/null 2>&1 || return 0
  nodes=$(docker ps -aq --filter "label=io.x-k8s.kind.cluster=$CLUSTER")
  if [ -n "$nodes" ]; then
    log "cluster \"$CLUSTER\": deleting (2 s)"
    # shellcheck disable=SC2086 # one id a line
    docker rm -fv $nodes >/dev/null
  fi
  if [ "$1" = own ] || [ -e "$STATE/created-network" ]; then docker network rm kind >/dev/null 2>&1 || true; fi
}
# The control groups of containers, bottom up. Those that still hold a process stay, and rmdir says nothing of it.
remove_cgroups() {
  local pass
  # shellcheck disable=SC2034 # systemd inside a node may let go of its groups a moment late
  for pass in 1 2 3; do
    find /sys/fs/cgroup -depth -type d \( -path '*/docker' -o -path '*/docker/*' \) -exec rmdir {} + 2>/dev/null || true
  done
}

CHOICE=$(cat "$STATE/docker-kind" 2>/dev/null || true)
delete_cluster "$CHOICE"
rm -f "$KUBECONFIG" "$STATE"/{docker-kind,kind.yaml,kind.log,created-network}
if [ "$(id -u)" = 0 ]; then
  rm -rf --one-file-system "$BUILD/nodes"
  if [ "${1:-}" != --keep-docker ]; then "$KIND_DIR/docker.sh" down; fi
fi
if [ ! -d "$DOCKER_STATE" ] && [ -d "$STATE" ]; then
  if [ "$CHOICE" = own ]; then remove_cgroups; fi
  rm -rf --one-file-system "$STATE"
fi
log "down in $(seconds_since "$START") s; what was built stays in $CACHE; to remove it too: rm -rf $CACHE"
