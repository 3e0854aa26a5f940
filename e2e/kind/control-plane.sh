#!/usr/bin/env bash
# control-plane.sh up|down DIR | stop|start DIR PROCESS: etcd, kube-apiserver and kube-controller-manager alone, for
# integration tests. No nodes, so pods stay Pending; Deployments, ReplicaSets, garbage collection, namespaces and
# service accounts work. All state lies under DIR, the kubeconfig (cluster-admin) is DIR/kubeconfig; any number may run
# at once. 4 s.
#   stop DIR PROCESS    kills one of the three, as an outage does; its data stays
#   start DIR PROCESS   starts it again on the same port and waits until the API server is ready
#   ENDS_WITH=PID                          up: all of it goes down when that process is gone, however it ended
#   API_PORT, ETCD_PORT, KCM_PORT          free ports are chosen when unset
#   APISERVER_EXTRA_ARGS, KCM_EXTRA_ARGS   more flags, separated by blanks
#   KUBEBUILDER_ASSETS                     a folder with etcd, kube-apiserver, kubectl to use in place of our build;
#                                          without kube-controller-manager there, no controller runs
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# free_ports N: ports that nothing listens on, below the range that the kernel gives to outgoing connections
free_ports() {
  python3 - "$1" <<'P'
import random, socket, sys
held = []
while len(held) < int(sys.argv[1]):
    probe = socket.socket()
    try:
        probe.bind(("127.0.0.1", random.randrange(20000, 32000)))
    except OSError:
        continue
    held.append(probe)
print(*(probe.getsockname()[1] for probe in held))
P
}
# certificate NAME SUBJECT USAGE [SAN]: $PKI/NAME.{key,crt}, signed by the CA
certificate() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$PKI/$1.key" -subj "$2" -out "$PKI/$1.csr" 2>/dev/null
  openssl x509 -req -in "$PKI/$1.csr" -CA "$PKI/ca.crt" -CAkey "$PKI/ca.key" -CAcreateserial -days 30 -out "$PKI/$1.crt" \
    -extfile <(printf 'extendedKeyUsage=%s\n%s\n' "$3" "${4:+subjectAltName=$4}") 2>/dev/null
}
make_certificates() {
  mkdir -p "$PKI"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$PKI/ca.key" -subj /CN=ca -days 30 \
    -addext basicConstraints=critical,CA:true -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature -out "$PKI/ca.crt" 2>/dev/null
  certificate apiserver /CN=kube-apiserver serverAuth "IP:127.0.0.1,IP:10.96.0.1,DNS:localhost,DNS:kubernetes.default.svc"
  certificate admin /O=system:masters/CN=admin clientAuth
  openssl genrsa -out "$PKI/sa.key" 2048 2>/dev/null
  openssl rsa -in "$PKI/sa.key" -pubout -out "$PKI/sa.pub" 2>/dev/null
}
write_kubeconfig() {
  cat >"$DIR/kubeconfig" <<K
apiVersion: v1
kind: Config
clusters: [{name: control-plane, cluster: {server: "https://127.0.0.1:$API_PORT", certificate-authority-data: $(base64 -w0 "$PKI/ca.crt")}}]
users: [{name: admin, user: {client-certificate-data: $(base64 -w0 "$PKI/admin.crt"), client-key-data: $(base64 -w0 "$PKI/admin.key")}}]
contexts: [{name: control-plane, context: {cluster: control-plane, user: admin}}]
current-context: control-plane
K
}
# Where each process listens, and what is given to it: `start` does as `up` did.
write_settings() { declare -p ASSETS API_PORT ETCD_PORT KCM_PORT PEER_PORT APISERVER_EXTRA_ARGS KCM_EXTRA_ARGS >"$DIR/settings"; }
start_etcd() {
  local peer=http://127.0.0.1:$PEER_PORT client=http://127.0.0.1:$ETCD_PORT
  # Test data: no write waits for the disk.
  spawn "$DIR" etcd "$ASSETS/etcd" --name=test --data-dir="$DIR/etcd" --unsafe-no-fsync --log-level=warn \
    --listen-client-urls="$client" --advertise-client-urls="$client" \
    --listen-peer-urls="$peer" --initial-advertise-peer-urls="$peer" --initial-cluster="test=$peer"
}
start_apiserver() {
  # shellcheck disable=SC2086 # extra flags are words
  spawn "$DIR" kube-apiserver "$ASSETS/kube-apiserver" --etcd-servers="http://127.0.0.1:$ETCD_PORT" \
    --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --secure-port="$API_PORT" --service-cluster-ip-range=10.96.0.0/16 \
    --endpoint-reconciler-type=none --authorization-mode=RBAC --allow-privileged=true \
    --client-ca-file="$PKI/ca.crt" --tls-cert-file="$PKI/apiserver.crt" --tls-private-key-file="$PKI/apiserver.key" \
    --service-account-issuer=https://kubernetes.default.svc.cluster.local \
    --service-account-key-file="$PKI/sa.pub" --service-account-signing-key-file="$PKI/sa.key" $APISERVER_EXTRA_ARGS
}
start_controller_manager() {
  # As admin: service accounts for its controllers would take 6 s longer to start.
  # shellcheck disable=SC2086
  spawn "$DIR" kube-controller-manager "$ASSETS/kube-controller-manager" --kubeconfig="$DIR/kubeconfig" \
    --bind-address=127.0.0.1 --secure-port="$KCM_PORT" --leader-elect=false --kube-api-qps=500 --kube-api-burst=1000 \
    --root-ca-file="$PKI/ca.crt" --service-account-private-key-file="$PKI/sa.key" $KCM_EXTRA_ARGS
}
# wait_for PROCESS CMD...: until CMD succeeds; the end of the log when it does not, or when PROCESS ends before
wait_for() {
  local process=$1 end=$((SECONDS + 60))
  shift
  until "$@" >/dev/null 2>&1; do
    if ! running "$DIR" "$process" >/dev/null || ((SECONDS >= end)); then
      tail -20 "$DIR/log/$process.log" >&2
      stop_processes
      die "$process did not become ready; the whole log is $DIR/log/$process.log"
    fi
    sleep 0.1
  done
}
up() {
  local start ports controllers=yes
  start=$(now)
  if running "$DIR" kube-apiserver >/dev/null; then
    log "a control plane runs there already"
    return 0
  fi
  down
  if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then ASSETS=$KUBEBUILDER_ASSETS; else
    ASSETS=$BIN
    "$KIND_DIR/build.sh" kube
  fi
  log "control plane: starting (4 s)"
  read -r -a ports <<<"$(free_ports 4)"
  API_PORT=${API_PORT:-${ports[0]}} ETCD_PORT=${ETCD_PORT:-${ports[1]}} KCM_PORT=${KCM_PORT:-${ports[2]}} PEER_PORT=${ports[3]}
  APISERVER_EXTRA_ARGS=${APISERVER_EXTRA_ARGS:-} KCM_EXTRA_ARGS=${KCM_EXTRA_ARGS:-}
  mkdir -p "$DIR"
  write_settings
  if [ -n "${ENDS_WITH:-}" ]; then
    spawn "$DIR" watchdog "$KIND_DIR/control-plane.sh" down-after "$DIR" "$ENDS_WITH" "$(start_time "$ENDS_WITH")"
  fi
  start_etcd
  make_certificates
  write_kubeconfig
  start_apiserver
  if [ -x "$ASSETS/kube-controller-manager" ]; then start_controller_manager; else
    controllers=no
    log "$ASSETS has no kube-controller-manager: no controller runs (no Deployments, no garbage collection)"
  fi
  wait_until_ready
  if [ $controllers = yes ]; then # at work once it has made this
    wait_for kube-controller-manager "$ASSETS/kubectl" --kubeconfig="$DIR/kubeconfig" -n default get serviceaccount default
  fi
  log "control plane: ready after $(seconds_since "$start") s; export KUBECONFIG=$DIR/kubeconfig"
}
wait_until_ready() { wait_for kube-apiserver "$ASSETS/kubectl" --kubeconfig="$DIR/kubeconfig" get --raw /readyz; }
stop_processes() { # the data goes away with them, so none has to end gracefully
  local process
  for process in kube-controller-manager kube-apiserver etcd; do halt "$DIR" "$process" KILL; done
}
start_again() {
  # shellcheck source=/dev/null # what write_settings wrote
  . "$DIR/settings"
  running "$DIR" "$1" >/dev/null || "${STARTS[$1]}"
  wait_until_ready
}
down() {
  halt "$DIR" watchdog KILL
  remove
}
remove() {
  stop_processes
  rm -rf "$DIR"/{etcd,pki,log,pid,kubeconfig,settings}
  rmdir "$DIR" 2>/dev/null || true # what others put there stays
}
# down_after PID START: the watchdog. Nothing is told when a process is killed, so it looks.
down_after() {
  while [ -n "$2" ] && [ "$(start_time "$1")" = "$2" ]; do sleep 1; done
  remove
}

USAGE="usage: control-plane.sh up DIR | down DIR | stop DIR PROCESS | start DIR PROCESS"
declare -A STARTS=([etcd]=start_etcd [kube-apiserver]=start_apiserver [kube-controller-manager]=start_controller_manager)
[ $# -ge 2 ] || die "$USAGE"
DIR=$(realpath -m "$2") PKI=$(realpath -m "$2")/pki
umask 077 # the kubeconfig holds an admin's key
case $1:$# in
  up:2) up ;;
  down:2) down ;;
  down-after:4) down_after "$3" "$4" ;;
  stop:3 | start:3)
    [ -n "${STARTS[$3]:-}" ] || die "$3: no such process; there are ${!STARTS[*]}"
    [ -f "$DIR/settings" ] || die "no control plane runs in $DIR"
    if [ "$1" = stop ]; then halt "$DIR" "$3" KILL; else start_again "$3"; fi
    ;;
  *) die "$USAGE" ;;
esac
