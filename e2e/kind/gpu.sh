#!/usr/bin/env bash
# gpu.sh NODE COUNT: let a node offer COUNT nvidia.com/gpu that do not exist, by a patch of its status.
# The kubelet keeps what it does not know; for clusters without our device plugin (fake-gpus.yaml).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
[ $# = 2 ] || die "usage: gpu.sh NODE COUNT"
kubectl patch node "$1" --subresource=status --type=json -p "[
  {\"op\": \"add\", \"path\": \"/status/capacity/nvidia.com~1gpu\", \"value\": \"$2\"},
  {\"op\": \"add\", \"path\": \"/status/allocatable/nvidia.com~1gpu\", \"value\": \"$2\"}]" >/dev/null
