#!/usr/bin/env bash
# From nothing to an answered chat: a kind cluster with this checkout's operator, a SGLangCluster, and a question
# asked through its Service. Progress goes to stderr, the result to stdout.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=e2e/kind/lib.sh
. e2e/kind/lib.sh
MANIFEST=examples/sglangcluster.yaml
NAME=smollm2
QUESTION="What is the capital of France?"
READY_TIMEOUT_S=900
# A reason that needs the user may pass by itself (an image still being loaded); not for so long.
STALLED_TIMEOUT_S=120
START=$SECONDS

on_failure() {
  trap - ERR
  log "quickstart failed after $((SECONDS - START)) s; what the cluster says:"
  e2e/diagnose.sh >&2 || true
  log "docs/troubleshooting.md explains each reason. The cluster is left running: look at it, or end it with make down"
  exit 1
}

# condition: what status says about readiness, as one line (the message comes last, for it may hold anything):
# generation|generation that status is about|Ready|Stalled|reason|message
condition() {
  local ready='.status.conditions[?(@.type=="Ready")]'
  kubectl get sglangcluster "$NAME" -o jsonpath="{.metadata.generation}|{$ready.observedGeneration}|{$ready.status}|{.status.conditions[?(@.type==\"Stalled\")].status}|{$ready.reason}|{$ready.message}"
}
wait_until_ready() {
  local start=$SECONDS shown_at=-100 stalled_since='' shown='' line generation observed ready stalled reason message
  while ((SECONDS - start < READY_TIMEOUT_S)); do
    line=$(condition)
    IFS='|' read -r generation observed ready stalled reason message <<<"$line"
    if [ "$observed" != "$generation" ]; then ready='' stalled='' reason=Waiting message='for the operator to see the change'; fi
    if [ "$reason $message" != "$shown" ] || ((SECONDS - shown_at >= 15)); then
      log "$NAME: $reason: $message ($((SECONDS - start)) s)"
      shown="$reason $message" shown_at=$SECONDS
    fi
    if [ "$ready" = True ]; then return; fi
    if [ "$stalled" = True ]; then stalled_since=${stalled_since:-$SECONDS}; else stalled_since=''; fi
    if [ -n "$stalled_since" ] && ((SECONDS - stalled_since > STALLED_TIMEOUT_S)); then
      log "$NAME: stalled for more than $STALLED_TIMEOUT_S s"
      return 1
    fi
    sleep 2
  done
  log "$NAME: not Ready within $READY_TIMEOUT_S s"
  return 1
}

where_next() {
  cat <<EOF

Where to go next (first: . e2e/kind/env.sh, which points kubectl at this cluster)
  kubectl get sglc                                    status at a glance
  kubectl describe sglc $NAME                       conditions and events
  e2e/ask.py "Why is the sky blue?"                   another question
  kubectl scale sglc $NAME --replicas 2             a second engine
  kubectl patch sglc $NAME --type merge -p '{"spec":{"cache":{"eviction":{"policy":"lru"}}}}'
                                                      a changed setting: watch it roll with kubectl get pods -w
  kubectl explain sglc.spec                           every field
  kubectl delete sglc $NAME                         engines, Service and all
  make down                                           stop the cluster (the next start takes under 3 min)
EOF
}

trap on_failure ERR
log "quickstart: about 15 min on a fresh machine (all is built once), under 3 min with everything built, seconds when it runs already"
e2e/deploy.sh
log "$NAME: applying $MANIFEST; the engine takes 20 s to 2 min to load the model"
kubectl apply -f "$MANIFEST" >&2
wait_until_ready
log "asking $NAME through its Service (5 to 20 s)"
answer=$(e2e/ask.py --cluster "$NAME" --expect Paris "$QUESTION")
printf '\nQ: %s\nA: %s\n\n' "$QUESTION" "$answer"
kubectl get sglangcluster "$NAME"
echo
kubectl get pods -l "sglang.dev/cluster=$NAME" -o wide
where_next
log "quickstart: done in $((SECONDS - START)) s"
