#!/usr/bin/env bash
# A kind cluster with this checkout's operator in it: images, cluster and chart. What is there already is kept or
# brought up to date, so a second run takes seconds.
#   deploy.sh [HELM-OPTION...]    for example --set replicas=2
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=e2e/kind/lib.sh
. e2e/kind/lib.sh
NAMESPACE=sglang-system
LOCK=$CACHE/deploy.lock

# One at a time: another run would take a cluster that is just being made for a broken one. -o keeps the lock from
# what is started here to stay.
if [ "${LOCKED:-}" != "$LOCK" ]; then
  mkdir -p "$CACHE"
  flock -n "$LOCK" true || log "waiting for another run that deploys"
  LOCKED=$LOCK exec flock -o "$LOCK" e2e/deploy.sh "$@"
fi
ARCHIVES=("$CACHE"/images/{operator,agent,router,engine-cpu,smollm2,tiny}.tar)

# Where no Docker answers, Kubernetes is built here: beside the images, as both spend part of their time downloading.
kubernetes=
trap '[ -z "$kubernetes" ] || kill "$kubernetes" 2>/dev/null || true' EXIT
if ! docker version >/dev/null 2>&1; then
  e2e/kind/build.sh &
  kubernetes=$!
fi
images/build.sh
if [ -n "$kubernetes" ]; then
  wait "$kubernetes"
  kubernetes=
fi
e2e/kind/up.sh "${ARCHIVES[@]}" >/dev/null

helm=$(e2e/helm.sh)
log "operator: installing the chart (10 to 30 s)"
# The tag stays the same when the image is built anew: its content, named in the pod, makes a new build roll out.
read -r _ content < <(images_in "$CACHE/images/operator.tar")
"$helm" upgrade --install sglang-operator charts/sglang-operator --namespace "$NAMESPACE" --create-namespace \
  --set image.tag=dev --set agent.image.tag=dev --set router.image.tag=dev \
  --set-string "podAnnotations.sglang\.dev/image=$content" \
  --wait --timeout 3m "$@" >/dev/null
log "operator: running in namespace $NAMESPACE"
