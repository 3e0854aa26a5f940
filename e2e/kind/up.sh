#!/usr/bin/env bash
# up.sh [IMAGE.tar...]: the kind cluster, one control plane and two workers that offer fake GPUs, with these image
# archives on its nodes. A healthy cluster that runs is kept. KUBECONFIG is $CACHE/kubeconfig (`. e2e/kind/env.sh`).
#   GPUS_PER_NODE=4      how many nvidia.com/gpu each worker offers
#   KIND_NODE_IMAGE      a public node image in place of the one in env.sh
#   KIND_DOCKER=auto     public: your Docker and kind's public node image; own: a dockerd from Debian's packages
#                        and a node image built here; auto: public where that image can be had, else own
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
START=$(now)
WORKERS=("$CLUSTER-worker" "$CLUSTER-worker2")
AUDIT_POLICY=/etc/kubernetes/audit-policy.yaml # in the node

# Which Docker and node image: those of a run before this one, those asked for, or the first that are possible.
choose() {
  local recorded wanted=${KIND_DOCKER:-auto}
  recorded=$(cat "$STATE/docker-kind" 2>/dev/null || true)
  case $wanted in auto | public | own) ;; *) die "KIND_DOCKER is \"$wanted\"; it can be auto, public or own" ;; esac
  if [ "$wanted" = auto ]; then wanted=$recorded; fi
  if [ -n "$recorded" ] && [ "$wanted" != "$recorded" ]; then
    die "the cluster was started with KIND_DOCKER=$recorded; run e2e/kind/down.sh before you change it"
  fi
  if [ -n "$wanted" ]; then echo "$wanted"; elif public_possible; then echo public; else
    own_possible
    echo own
  fi
}
public_possible() {
  docker version >/dev/null 2>&1 && [ ! -S "$DOCKER_STATE/docker.sock" ] || return 1
  docker image inspect "$PUBLIC_NODE_IMAGE" >/dev/null 2>&1 && return 0
  log "kind's node image: pulling $PUBLIC_NODE_IMAGE (400 MB)"
  docker pull --quiet "$PUBLIC_NODE_IMAGE" >&2
}
own_possible() {
  local missing=()
  [ "$(id -u)" = 0 ] || missing+=("root")
  command -v apt-get >/dev/null || missing+=("Debian's apt-get")
  [ "$(uname -m)" = x86_64 ] || missing+=("an x86_64 machine")
  command -v go >/dev/null || missing+=("Go 1.21 or newer in PATH")
  [ ${#missing[@]} -gt 0 ] || return 0
  die "no Docker answers that has or can pull $PUBLIC_NODE_IMAGE. Without one a cluster takes root, Debian, x86_64 and Go;" \
    "missing: $(printf '%s, ' "${missing[@]}" | sed 's/, $//'). Either start Docker with access to Docker Hub, or provide these."
}
prepare_public() {
  local dir
  if ! command -v kind >/dev/null; then "$KIND_DIR/build.sh" kind; fi
  if ! command -v kubectl >/dev/null; then # the node image has one
    dir=$(docker create "$PUBLIC_NODE_IMAGE")
    docker cp "$dir:/usr/bin/kubectl" "$BIN/kubectl"
    docker rm "$dir" >/dev/null
  fi
  docker network inspect kind >/dev/null 2>&1 || touch "$STATE/created-network"
  IMAGE=$PUBLIC_NODE_IMAGE
}
prepare_own() {
  "$KIND_DIR/build.sh"
  "$KIND_DIR/docker.sh" up >/dev/null
  export DOCKER_HOST=$OWN_DOCKER_HOST
  IMAGE=$("$KIND_DIR/node-image.sh")
}
# node NAME ROLE: its part of kind's configuration
node() {
  echo "- role: $2"
  if [ "$2" = worker ]; then echo "  labels: {sglang.dev/pool: gpu}"; fi
  echo "  extraMounts:"
  if [ "$CHOICE" = own ]; then echo "  - {hostPath: $BUILD/nodes/$1, containerPath: /var/lib/containerd}"; fi
  if [ "$2" = control-plane ]; then
    echo "  - {hostPath: $KIND_DIR/audit-policy.yaml, containerPath: $AUDIT_POLICY, readOnly: true}"
  fi
}
# The audit log of the API server: /var/log/kubernetes/audit*.log in the control plane's node.
audit() {
  cat <<C
kubeadmConfigPatches:
- |
  kind: ClusterConfiguration
  apiVersion: kubeadm.k8s.io/v1beta4
  apiServer:
    extraArgs:
    - {name: audit-policy-file, value: $AUDIT_POLICY}
    - {name: audit-log-path, value: /var/log/kubernetes/audit.log}
    - {name: audit-log-maxsize, value: "20"}
    - {name: audit-log-maxbackup, value: "3"}
    extraVolumes:
    - {name: audit-policy, hostPath: $AUDIT_POLICY, mountPath: $AUDIT_POLICY, readOnly: true, pathType: File}
    - {name: audit-log, hostPath: /var/log/kubernetes, mountPath: /var/log/kubernetes, pathType: DirectoryOrCreate}
C
}
config() {
  echo "kind: Cluster"
  echo "apiVersion: kind.x-k8s.io/v1alpha4"
  audit
  echo "nodes:"
  node "$CLUSTER-control-plane" control-plane
  for worker in "${WORKERS[@]}"; do node "$worker" worker; done
}
healthy() {
  [ -f "$KUBECONFIG" ] && kubectl get --raw /readyz --request-timeout=5s >/dev/null 2>&1 &&
    kubectl wait --for=condition=Ready nodes --all --timeout=10s >/dev/null 2>&1 &&
    [ "$(kubectl get nodes -o name | wc -l)" = 3 ]
}
create() {
  local name
  if [ -n "$(docker ps -aq --filter "label=io.x-k8s.kind.cluster=$CLUSTER")" ]; then
    log "a cluster is there that does not answer: deleting it"
    kind delete cluster --name "$CLUSTER" --kubeconfig "$KUBECONFIG" >&2
  fi
  if [ "$CHOICE" = own ]; then
    "$KIND_DIR/seed.sh" add "$BUILD"/img/{node,probe}.tar "$@"
    for name in "$CLUSTER-control-plane" "${WORKERS[@]}"; do "$KIND_DIR/seed.sh" clone "$BUILD/nodes/$name"; done
  fi
  log "kind cluster \"$CLUSTER\": creating (20 to 40 s)"
  config >"$STATE/kind.yaml"
  watched "creating the cluster" kind create cluster --name "$CLUSTER" --image "$IMAGE" --config "$STATE/kind.yaml" \
    --kubeconfig "$KUBECONFIG" --wait 180s 2>&1 | tee "$STATE/kind.log" | sed -un 's/^ ✓ /           /p' >&2 || {
    tail -40 "$STATE/kind.log" >&2
    die "kind could not create the cluster; its messages are above and in $STATE/kind.log"
  }
  # kubectl wait says nothing about nodes that have not joined yet; kind has let all three join.
  watched "waiting for the nodes" kubectl wait --for=condition=Ready nodes --all --timeout=180s >/dev/null
}
# kube-proxy sends a Service's connections to a pod in one table and refuses them without pods in another. Between the
# two writes one leaves the node for good, and where a proxy outside answers for every address, that is who answers.
SERVICES=10.96.0.0/16 # kind's default
guard() {
  local node rule=(FORWARD -d "$SERVICES" -j DROP)
  for node in "$CLUSTER-control-plane" "${WORKERS[@]}"; do
    docker exec "$node" iptables -w -C "${rule[@]}" 2>/dev/null || docker exec "$node" iptables -w -I "${rule[@]}"
  done
}
# What may already be so: the control plane takes pods (the operator's), the workers only pods that ask for GPUs.
shape() {
  local worker
  kubectl taint nodes "$CLUSTER-control-plane" node-role.kubernetes.io/control-plane:NoSchedule- >/dev/null 2>&1 || true
  kubectl taint nodes "${WORKERS[@]}" nvidia.com/gpu=present:NoSchedule --overwrite >/dev/null
  if [ "$CHOICE" = own ]; then
    sed -e "s|\$AGENT_IMAGE|$AGENT_IMAGE|" -e "s|\$GPUS_PER_NODE|$GPUS_PER_NODE|" "$KIND_DIR/manifests/fake-gpus.yaml" |
      kubectl apply -f - >/dev/null
  else
    for worker in "${WORKERS[@]}"; do "$KIND_DIR/gpu.sh" "$worker" "$GPUS_PER_NODE"; done
  fi
  for worker in "${WORKERS[@]}"; do
    kubectl wait --for=jsonpath='{.status.allocatable.nvidia\.com/gpu}'="$GPUS_PER_NODE" "node/$worker" --timeout=60s >/dev/null
  done
}

CHOICE=$(choose)
mkdir -p "$STATE" "$BIN"
echo "$CHOICE" >"$STATE/docker-kind"
if healthy; then
  log "the cluster runs and is kept"
else
  "prepare_$CHOICE"
  create "$@"
fi
guard
shape
[ $# = 0 ] || "$KIND_DIR/load.sh" "$@"
log "cluster \"$CLUSTER\" is up ($(seconds_since "$START") s); kubectl reaches it after: . ${KIND_DIR#"$PWD/"}/env.sh"
echo "$KUBECONFIG"
