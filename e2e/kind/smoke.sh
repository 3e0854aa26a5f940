#!/usr/bin/env bash
# smoke.sh: checks that the running cluster is what the end-to-end tests count on. 20 s; leaves nothing in it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
START=$(now)
FAILED=0
SCRATCH=$(mktemp -d)
at_exit 'rm -rf "$SCRATCH"; kubectl delete namespace smoke --ignore-not-found --wait=false >/dev/null'

# check WHAT CMD...: one line; what CMD said only when it fails
check() {
  local what=$1
  shift
  if "$@" >"$SCRATCH/output" 2>&1; then echo "ok    $what"; else
    echo "FAIL  $what"
    sed 's/^/        /' "$SCRATCH/output" | tail -5
    FAILED=$((FAILED + 1))
  fi
}
# says WANTED CMD...: whether the output of CMD has it
says() {
  local wanted=$1 output
  shift
  output=$("$@" 2>&1)
  echo "got: $output"
  grep -qF -- "$wanted" <<<"$output"
}
in_smoke() { kubectl -n smoke "$@"; }
field() { kubectl get "$1" -o jsonpath="$2"; }
from_client() { in_smoke exec client -- /bin/probe get "$1"; }
both_answer() {
  local names=
  for _ in $(seq 40); do
    names=$(printf '%s\n%s' "$names" "$(from_client "$1")" | sed '/^$/d' | sort -u)
    if [ "$(wc -l <<<"$names")" = 2 ]; then return 0; fi
  done
  echo "only these answered: $names"
  return 1
}
# a server on either worker fetched from the client's node, and from the other worker
crosses_nodes() {
  local pods ip_a ip_b name_a name_b
  pods=$(in_smoke get pods -l app=web -o jsonpath='{range .items[*]}{.metadata.name} {.status.podIP} {end}')
  read -r name_a ip_a name_b ip_b <<<"$pods"
  says "$name_a" from_client "http://$ip_a:8080/" && says "$name_b" from_client "http://$ip_b:8080/" &&
    says "$name_b" in_smoke exec "$name_a" -- /bin/probe get "http://$ip_b:8080/"
}
greedy_was_killed() {
  in_smoke wait --for=jsonpath='{.status.phase}'=Failed pod/greedy --timeout=40s &&
    says OOMKilled in_smoke get pod greedy -o jsonpath='{.status.containerStatuses[0].state.terminated.reason}'
}
stays_pending() {
  in_smoke wait --for=jsonpath='{.status.conditions[0].reason}'=Unschedulable pod/too-many --timeout=20s &&
    says "Insufficient nvidia.com/gpu" in_smoke get pod too-many -o jsonpath='{.status.conditions[0].message}'
}
probe_archive() { # the image that the pods run; our own build has it, elsewhere it takes Go
  if [ ! -e "$BUILD/img/probe.tar" ]; then
    "$KIND_DIR/build.sh" tools
    mkdir -p "$BUILD/img" "$SCRATCH/probe/bin"
    cp "$BIN/probe" "$SCRATCH/probe/bin/"
    "$KIND_DIR/mkimage.py" "$BUILD/img/probe.tar" <<<"[{\"names\": [\"$PROBE_IMAGE\"], \"layers\": [\"$SCRATCH/probe\"], \"config\": {\"Entrypoint\": [\"/bin/probe\"]}}]"
  fi
}

kubectl get --raw /readyz >/dev/null || die "no cluster answers; start it with e2e/kind/up.sh"
probe_archive
mkdir "$SCRATCH/data"
echo "hello from an image" >"$SCRATCH/data/greeting"
"$KIND_DIR/mkimage.py" "$SCRATCH/data.tar" <<<"[{\"names\": [\"docker.io/sglang-operator/smoke-data:dev\"], \"layers\": [\"$SCRATCH/data\"]}]"
"$KIND_DIR/load.sh" "$BUILD/img/probe.tar" "$SCRATCH/data.tar"
kubectl delete namespace smoke --ignore-not-found >/dev/null
GPUS=$(field "node/$CLUSTER-worker" '{.status.allocatable.nvidia\.com/gpu}')
sed -e "s|\$PROBE_IMAGE|$PROBE_IMAGE|" -e "s|\$TOO_MANY|$((GPUS + 1))|" "$KIND_DIR/manifests/smoke.yaml" | kubectl apply -f - >/dev/null

check "three nodes are Ready" kubectl wait --for=condition=Ready node/"$CLUSTER"-{control-plane,worker,worker2} --timeout=60s
check "the control plane takes pods" test -z "$(field "node/$CLUSTER-control-plane" '{.spec.taints}')"
for worker in "$CLUSTER-worker" "$CLUSTER-worker2"; do
  check "$worker is in the pool" test "$(field "node/$worker" '{.metadata.labels.sglang\.dev/pool}')" = gpu
  check "$worker is tainted" says "nvidia.com/gpu=present:NoSchedule" field "node/$worker" '{range .spec.taints[*]}{.key}={.value}:{.effect}{end}'
  check "$worker offers $GPUS GPUs" test "$(field "node/$worker" '{.status.capacity.nvidia\.com/gpu} {.status.allocatable.nvidia\.com/gpu}')" = "$GPUS $GPUS"
done
check "two pods hold a GPU each, on two workers" in_smoke rollout status deploy/web --timeout=60s
check "a pod on the control plane is Ready" in_smoke wait --for=condition=Ready pod/client --timeout=60s
check "pods reach each other across nodes" crosses_nodes
check "a Service's name resolves and both pods answer" both_answer http://web.smoke.svc.cluster.local/
check "the API server reaches a Service" says web- kubectl get --raw /api/v1/namespaces/smoke/services/http:web:80/proxy/
check "an image is mounted as a volume" in_smoke wait --for=jsonpath='{.status.phase}'=Succeeded pod/reader --timeout=40s
check "its file can be read" says "hello from an image" in_smoke logs reader
check "a container over its memory limit is killed" greedy_was_killed
check "$((GPUS + 1)) GPUs on one node: the pod stays Pending" stays_pending
check "the namespace goes away" kubectl delete namespace smoke --timeout=60s

if [ $FAILED -gt 0 ]; then die "$FAILED checks failed"; fi
log "all checks passed ($(seconds_since "$START") s)"
