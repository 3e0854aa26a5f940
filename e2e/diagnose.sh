#!/usr/bin/env bash
# What a person would look at first when something does not come up: resources, conditions, events, logs.
# Every step is tried, whatever the one before said.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
# shellcheck source=e2e/kind/lib.sh
. e2e/kind/lib.sh

title() { printf '\n== %s\n' "$*"; }
kubectl() { command kubectl --request-timeout=15s "$@" 2>&1; }

cluster() {
  title "SGLangClusters"
  kubectl get sglangclusters -A -o wide
  kubectl get sglangclusters -A -o jsonpath='{range .items[*]}{.metadata.namespace}/{.metadata.name}{"\n"}{range .status.conditions[*]}  {.type}={.status} {.reason}: {.message}{"\n"}{end}{end}'
  title "nodes and pods"
  kubectl get nodes
  kubectl get pods -A -o wide
  title "pods that are not ready"
  kubectl get pods -A -o jsonpath='{range .items[*]}{.metadata.namespace} {.metadata.name} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}' |
    awk '$3 != "True" {print $1, $2}' | head -5 | while read -r namespace pod; do
    title "$namespace/$pod"
    kubectl describe pod -n "$namespace" "$pod" | tail -40
    kubectl logs -n "$namespace" "$pod" --all-containers --tail 30
    kubectl logs -n "$namespace" "$pod" --all-containers --tail 30 --previous
  done
  title "warnings"
  kubectl get events -A --field-selector type=Warning --sort-by .lastTimestamp | tail -30
  title "the operator's log"
  kubectl logs -n sglang-system deployment/sglang-operator --tail 40
}

if [ ! -f "$KUBECONFIG" ]; then
  title "there is no cluster"
elif ! kubectl get --raw /readyz >/dev/null; then
  title "the API server of the cluster does not answer"
  docker ps --all --filter "label=io.x-k8s.kind.cluster=$CLUSTER" 2>&1
else
  cluster
fi
title "disk and memory of this machine"
df -h / /var/lib
free -m
