#!/usr/bin/env bash
# Builds the kind node image from build.sh's files, in the running docker; prints its name. About 10 s, kept
# until one of its inputs changes. It holds no container images: the nodes get theirs from the seed (seed.sh).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
IMAGE=sglang-operator/node:$K8S_VERSION
START=$(now)
KEY=$({
  cat "$BUILD"/stamp/{kube,runc,containerd,cni,rootfs} "$KIND_DIR/node-image.sh"
  find "$KIND_DIR/node" -type f | sort | xargs cat
} | sha256sum | cut -c1-24)
if [ "$(docker image inspect -f '{{index .Config.Labels "key"}}' "$IMAGE" 2>/dev/null)" = "$KEY" ]; then
  echo "$IMAGE"
  exit 0
fi
log "node image: building (10 s)"
ROOT=$(mktemp -d -p "$BUILD")
at_exit 'rm -rf --one-file-system "$ROOT"'
chmod 0755 "$ROOT"
tar -C "$ROOT" -xf "$BUILD/rootfs.tar"

# kind's own boot script, sysctls and unit, from its Go module
files=$(cd / && go mod download -json "sigs.k8s.io/kind@$KIND_VERSION" | jq -r .Dir)/images/base/files
install -m 0755 "$files/usr/local/bin/entrypoint" "$ROOT/usr/local/bin/"
install -m 0644 "$files"/etc/sysctl.d/* "$ROOT/etc/sysctl.d/"
install -D -m 0755 "$files/kind/bin/undo-mount-hacks.sh" "$ROOT/kind/bin/undo-mount-hacks.sh"
install -m 0644 "$files/etc/systemd/system/undo-mount-hacks.service" "$ROOT/etc/systemd/system/"

mkdir -p "$ROOT"/{kind/manifests,opt/cni/bin,etc/kubernetes/manifests,etc/cni/net.d}
cp -a "$KIND_DIR/node/root/." "$ROOT/"
cp "$KIND_DIR"/node/manifests/*.yaml "$ROOT/kind/manifests/"
echo "$K8S_VERSION" >"$ROOT/kind/version"
cp "$BIN"/{containerd,containerd-shim-runc-v2,ctr} "$ROOT/usr/local/bin/"
cp "$BIN/runc" "$ROOT/usr/local/sbin/"
cp "$BUILD"/cni/* "$ROOT/opt/cni/bin/"
cp "$BIN/kube" "$ROOT/usr/bin/"
for name in kubelet kubeadm kubectl; do ln -s kube "$ROOT/usr/bin/$name"; done

# Of Debian's services only those that a node needs.
systemd=$ROOT/lib/systemd/system units=$ROOT/etc/systemd/system
rm -f "$systemd"/multi-user.target.wants/* "$units"/*.wants/* "$systemd"/local-fs.target.wants/* \
  "$systemd"/sockets.target.wants/*{udev,initctl}* "$systemd"/basic.target.wants/* \
  "$systemd"/sysinit.target.wants/systemd-tmpfiles-setup.service
mkdir -p "$units/multi-user.target.wants"
for name in containerd kubelet undo-mount-hacks; do
  ln -sf "/etc/systemd/system/$name.service" "$units/multi-user.target.wants/$name.service"
done
ln -sf /dev/null "$units/systemd-binfmt.service"
echo "ReadKMsg=no" >>"$ROOT/etc/systemd/journald.conf"
: >"$ROOT/etc/machine-id" # made at first boot, one per node

tar -C "$ROOT" --xattrs -cf - . | docker import -c 'ENV container=docker' \
  -c 'ENTRYPOINT ["/usr/local/bin/entrypoint","/sbin/init"]' -c "LABEL key=$KEY" - "$IMAGE" >/dev/null
docker image prune -f --filter label=key >/dev/null # the one it replaces
log "node image: built in $(seconds_since "$START") s"
echo "$IMAGE"
