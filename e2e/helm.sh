#!/usr/bin/env bash
# Prints the path of a helm (3.14 or newer): the one in PATH, else this project's own, built once from its Go module.
set -euo pipefail
HELM_VERSION=v4.3.2
cache=${SGLANG_OPERATOR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sglang-operator}
own=$cache/bin/helm-$HELM_VERSION

new_enough() {
  local version
  version=$("$1" version --template '{{.Version}}' 2>/dev/null) || return 1
  [[ $version =~ ^v(4\.|3\.(1[4-9]|[2-9][0-9])) ]]
}
if found=$(command -v helm) && new_enough "$found"; then
  echo "$found"
  exit
fi
if [ ! -x "$own" ]; then
  command -v go >/dev/null || {
    echo "ERROR: neither helm nor go is in PATH. Install Helm (https://helm.sh/docs/intro/install) or Go 1.21 or newer (https://go.dev/dl)" >&2
    exit 1
  }
  mkdir -p "$cache/bin"
  exec 9>"$cache/bin/helm.lock"
  flock 9
fi
if [ ! -x "$own" ]; then
  echo "helm $HELM_VERSION: building from its Go module (2 to 5 min, once)" >&2
  # The flags of the Kubernetes build in e2e/kind: what both need is compiled once.
  (cd / && CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false" GOBIN=$cache/bin/helm.new \
    go install -ldflags "-s -w" "helm.sh/helm/v4/cmd/helm@$HELM_VERSION") >"$cache/bin/helm.log" 2>&1 || {
    tail -20 "$cache/bin/helm.log" >&2
    exit 1
  }
  mv "$cache/bin/helm.new/helm" "$own"
  rmdir "$cache/bin/helm.new"
fi
echo "$own"
