#!/usr/bin/env bash
# docker.sh ensure|up|down|purge: a dockerd of our own from Debian's docker.io package and the runc of build.sh.
#   up     starts it unless it answers already; prints `export DOCKER_HOST=...` for eval
#   ensure the same, unless a Docker answers already, yours or ours: for building images
#   down   stops it and takes away its bridge, firewall chains and sockets; images stay in $CACHE/docker
#   purge  down, and the images too
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
CHAINS="DOCKER DOCKER-USER DOCKER-ISOLATION-STAGE-1 DOCKER-ISOLATION-STAGE-2"

write_config() {
  mkdir -p "$DOCKER_DATA" "$DOCKER_STATE"
  # oom-score-adjust 0: a lower score than the caller's needs CAP_SYS_RESOURCE.
  cat >"$DOCKER_STATE/daemon.json" <<J
{"data-root": "$DOCKER_DATA", "exec-root": "$DOCKER_STATE/exec", "pidfile": "$DOCKER_STATE/docker.pid",
 "hosts": ["$OWN_DOCKER_HOST"], "storage-driver": "overlay2",
 "runtimes": {"built-runc": {"path": "$BIN/runc"}}, "default-runtime": "built-runc",
 "exec-opts": ["native.cgroupdriver=cgroupfs"], "oom-score-adjust": 0}
J
}
# What down has to put back: the policy and the setting that dockerd changes.
record_network() {
  [ ! -e "$DOCKER_STATE/forward-policy" ] || return 0
  if ip link show docker0 >/dev/null 2>&1; then touch "$DOCKER_STATE/foreign-docker0"; fi
  cat /proc/sys/net/ipv4/ip_forward >"$DOCKER_STATE/ip-forward"
  iptables -w -S FORWARD | awk '$1 == "-P" {print $3}' >"$DOCKER_STATE/forward-policy"
}
start() {
  local pid
  write_config
  record_network
  # What a dockerd that was killed could not remove. It would wait for its containerd of then, by the process id alone.
  rm -f "$DOCKER_STATE/docker.pid"
  pid=$(cat "$DOCKER_STATE/exec/containerd/containerd.pid" 2>/dev/null || true)
  if [ "$(readlink "/proc/$pid/exe")" != /usr/bin/containerd ]; then rm -f "$DOCKER_STATE/exec/containerd/containerd.pid"; fi
  # Debian's dockerd speaks to Debian's containerd 1.6: the one in $BIN must not be found.
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    spawn "$DOCKER_STATE" dockerd dockerd --config-file "$DOCKER_STATE/daemon.json"
  retry 30 docker version || {
    tail -20 "$DOCKER_STATE/log/dockerd.log" >&2
    die "dockerd did not start; its log is $DOCKER_STATE/log/dockerd.log"
  }
}
answers() { running "$DOCKER_STATE" dockerd >/dev/null && docker version >/dev/null 2>&1; }
up() {
  local begin
  begin=$(now)
  if answers; then return 0; fi
  [ "$(id -u)" = 0 ] || die "a dockerd of our own needs root"
  "$KIND_DIR/build.sh" packages runc
  log "dockerd: starting (2 s)"
  # Limits that three kubelets on one machine reach; where they cannot be raised, the defaults have to do.
  sysctl -qw fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=8192 2>/dev/null ||
    log "the inotify limits could not be raised"
  start
  log "dockerd $(docker version -f '{{.Server.Version}}') answers at $DOCKER_HOST after $(seconds_since "$begin") s"
}
down() {
  [ -d "$DOCKER_STATE" ] || return 0
  # One that was killed has left its containers, mounts and rules; started again, it finds and removes them.
  if answers || (start); then
    docker ps -aq | xargs -r docker rm -fv >/dev/null
    # shellcheck disable=SC2046 # one word a bridge
    set -- $(docker network ls -q --filter driver=bridge --filter type=custom | sed 's/^/br-/')
    docker network prune -f >/dev/null
  fi
  halt "$DOCKER_STATE" dockerd
  awk -v a="$DOCKER_DATA/" -v b="$DOCKER_STATE/" 'index($2 "/", a) == 1 || index($2 "/", b) == 1 {print $2}' /proc/self/mounts |
    sort -r | while read -r mount; do umount -l "$(printf '%b' "$mount")"; done
  if [ ! -e "$DOCKER_STATE/foreign-docker0" ]; then restore_network docker0 "$@"; fi
  rm -rf --one-file-system "$DOCKER_STATE"
  rmdir /run/containerd/s /run/containerd /run/docker/plugins /run/docker 2>/dev/null || true # where a foreign Docker uses them, they stay
}
# restore_network BRIDGE...: without these, without Docker's chains and what leads to them
restore_network() {
  local bridge port pattern tool table chain rule
  pattern=" DOCKER$(printf '|[io] %s ' "$@")"
  for bridge in "$@"; do
    ip link show "$bridge" >/dev/null 2>&1 || continue
    for port in "/sys/class/net/$bridge/brif"/*; do # a container's end of the cable, where dockerd was killed
      if [ -e "$port" ]; then ip link del "${port##*/}"; fi
    done
    ip link del "$bridge"
  done
  for tool in iptables ip6tables; do
    for table in filter nat; do
      "$tool" -w -t "$table" -S 2>/dev/null | awk -v p="$pattern" '/^-A [A-Z]+ / && $2 !~ /^DOCKER/ && $0 " " ~ p {sub("^-A", "-D"); print}' |
        while read -r rule; do
          # shellcheck disable=SC2086 # a rule is words
          "$tool" -w -t "$table" $rule
        done
      for chain in $CHAINS; do "$tool" -w -t "$table" -F "$chain" 2>/dev/null || true; done
      for chain in $CHAINS; do "$tool" -w -t "$table" -X "$chain" 2>/dev/null || true; done
    done
  done
  iptables -w -P FORWARD "$(cat "$DOCKER_STATE/forward-policy")"
  sysctl -qw "net.ipv4.ip_forward=$(cat "$DOCKER_STATE/ip-forward")"
}

if [ "${1:-}" = ensure ]; then
  if docker version >/dev/null 2>&1; then exit 0; fi
  set -- up
fi
export DOCKER_HOST=$OWN_DOCKER_HOST
case ${1:-} in
  up)
    up
    echo "export DOCKER_HOST=$DOCKER_HOST"
    ;;
  down) down ;;
  purge)
    down
    rm -rf --one-file-system "$DOCKER_DATA"
    ;;
  *) die "usage: docker.sh ensure|up|down|purge" ;;
esac
