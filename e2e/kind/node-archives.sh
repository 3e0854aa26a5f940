#!/usr/bin/env bash
# Writes the image archives of our own node image's cluster from build.sh's files: node.tar (pause, the Kubernetes
# components, CoreDNS, kube-proxy, the node agent) and probe.tar. build.sh calls it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
ROOT=$(mktemp -d -p "$BUILD")
at_exit 'rm -rf "$ROOT"'

# net_tools DIR: iptables (nft), ip, a shell and the libraries they load, copied from this Debian
net_tools() {
  local root=$1 lib name file
  lib=/usr/lib/$(uname -m)-linux-gnu
  mkdir -p "$root"/{usr/{sbin,bin,lib,lib64},run,etc,"$lib"}
  for name in sbin bin lib lib64; do ln -s "usr/$name" "$root/$name"; done
  cp /usr/sbin/xtables-nft-multi "$root/usr/sbin/"
  for name in ip{,6}tables{,-save,-restore}; do ln -s xtables-nft-multi "$root/usr/sbin/$name"; done
  cp -L "$(command -v ip)" "$root/usr/sbin/ip"
  cp "$(command -v busybox)" "$root/usr/bin/sh"
  cp -a "$lib/xtables" "$root$lib/"
  for file in /usr/sbin/xtables-nft-multi "$(command -v ip)" "$lib"/xtables/*.so; do ldd "$file"; done 2>/dev/null |
    grep -o '/[^ ]*\.so[^ ]*' | sort -u | while read -r file; do
    mkdir -p "$root$(dirname "$file")"
    cp -L "$file" "$root$file"
  done
}

mkdir -p "$ROOT"/pause "$ROOT"/kube/{usr/local/bin,tmp} "$ROOT"/probe/{bin,tmp}
chmod 1777 "$ROOT"/{kube,probe}/tmp
cp "$BIN/pause" "$ROOT/pause/"
cp "$BIN/probe" "$ROOT/probe/bin/"
cp "$BIN/kube" "$ROOT/kube/usr/local/bin/"
for link in "$BIN"/*; do
  if [ "$(readlink "$link")" = kube ]; then ln -s kube "$ROOT/kube/usr/local/bin/${link##*/}"; fi
done
net_tools "$ROOT/net"

components=()
for name in kube-apiserver kube-controller-manager kube-scheduler; do components+=("\"registry.k8s.io/$name:$K8S_VERSION\""); done
"$KIND_DIR/mkimage.py" "$BUILD/img/node.tar" <<J
[
  {"names": ["$PAUSE_IMAGE"], "layers": ["$ROOT/pause"], "config": {"Entrypoint": ["/pause"]}},
  {"names": [$(IFS=,; echo "${components[*]}"), "$ETCD_IMAGE"], "layers": ["$ROOT/kube"]},
  {"names": ["$COREDNS_IMAGE"], "layers": ["$ROOT/kube"], "config": {"Entrypoint": ["/usr/local/bin/coredns"]}},
  {"names": ["registry.k8s.io/kube-proxy:$K8S_VERSION", "$AGENT_IMAGE"], "layers": ["$ROOT/net", "$ROOT/kube"]}
]
J
"$KIND_DIR/mkimage.py" "$BUILD/img/probe.tar" <<J
[{"names": ["$PROBE_IMAGE"], "layers": ["$ROOT/probe"], "config": {"Entrypoint": ["/bin/probe"]}}]
J
