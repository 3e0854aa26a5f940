#!/usr/bin/env bash
# Builds what a cluster needs from the Go module proxy and Debian's packages, into $CACHE/kind.
#   build.sh           everything
#   build.sh PART...   some of: packages kube runc containerd cni kind tools rootfs images
# A part whose inputs have not changed since it was built is left alone, so a run with everything built takes
# under a second. Parts that do not need each other are built side by side.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
mkdir -p "$BIN" "$BUILD"/{cni,stamp,img,log}
COMPONENTS="etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl kubeadm coredns minicni fakegpu"
# docker.io and iptables run the nodes; gcc and libseccomp build runc; mmdebstrap builds the nodes' root;
# the kube-proxy image gets iptables, ip and busybox's shell from here.
PACKAGES="docker.io iptables iproute2 busybox-static mmdebstrap jq gcc libc6-dev libseccomp-dev pkg-config openssl"
# GOGC: the compiler collects its garbage less often; a fifth less CPU time for some more memory.
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false" GOGC=${GOGC:-400}

describe() {
  case $1 in
    packages) echo "Debian packages: installing (about 20 s)" ;;
    kube) echo "Kubernetes from Go modules: building (7 to 12 min the first time on 2 cores, 20 s after a change of ours)" ;;
    runc) echo "runc: building (15 s)" ;;
    containerd) echo "containerd: building (1 to 3 min)" ;;
    cni) echo "CNI plugins: building (10 s)" ;;
    kind) echo "kind: building (10 s)" ;;
    tools) echo "pause and probe: building (5 s)" ;;
    rootfs) echo "Debian root of the nodes: building (1 to 2 min)" ;;
    images) echo "images of the Kubernetes components: writing (5 s)" ;;
    *) die "no such part: $1 (packages kube runc containerd cni kind tools rootfs images)" ;;
  esac
}
hash_of() { cat "$@" | sha256sum | cut -c1-16; }
# key PART: changes when the part has to be built again
key() {
  local go_version
  go_version=$(go env GOVERSION)
  case $1 in
    packages) echo "$PACKAGES" ;;
    kube) echo "$go_version-$K8S_VERSION-$(hash_of "$KIND_DIR"/kube/*.go "$KIND_DIR"/kube/go.{mod,sum})" ;;
    runc) echo "$go_version-$RUNC_VERSION-1" ;;
    containerd) echo "$go_version-$CONTAINERD_VERSION-1" ;;
    cni) echo "$go_version-$CNI_VERSION-1" ;;
    kind) echo "$go_version-$KIND_VERSION-1" ;;
    tools) echo "$go_version-$(hash_of "$KIND_DIR"/tools/*/*.go)" ;;
    rootfs) echo 1 ;;
    images) hash_of "$KIND_DIR"/{node-archives.sh,env.sh,mkimage.py} "$BUILD"/stamp/{kube,tools} ;;
  esac
}

build_packages() {
  local missing=() package keep_stopped=/usr/sbin/policy-rc.d
  for package in $PACKAGES; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  [ "$(id -u)" = 0 ] || die "these Debian packages are missing, and installing them needs root: ${missing[*]}"
  apt-get update -qq
  # Debian starts a service as it installs it, unless this file says no; the nodes get a dockerd of their own.
  if [ -e "$keep_stopped" ]; then keep_stopped=; else
    printf '#!/bin/sh\nexit 101\n' >"$keep_stopped"
    chmod 0755 "$keep_stopped"
  fi
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" || {
    rm -f "$keep_stopped"
    return 1
  }
  rm -f "$keep_stopped"
}
build_kube() {
  local minor=${K8S_VERSION#v1.} name
  (cd "$KIND_DIR/kube" && go build -ldflags="-s -w \
     -X k8s.io/component-base/version.gitVersion=$K8S_VERSION -X k8s.io/component-base/version.gitMajor=1 \
     -X k8s.io/component-base/version.gitMinor=${minor%%.*} -X k8s.io/client-go/pkg/version.gitVersion=$K8S_VERSION" \
    -o "$BIN/kube.new" .)
  mv "$BIN/kube.new" "$BIN/kube" # a running one keeps its file
  for name in $COMPONENTS; do ln -sf kube "$BIN/$name"; done
}
# Static, so that one file serves on this machine and in the nodes. One change to the source: capabilities outside
# the bounding set are left out. As it is, `docker run --privileged` asks for all that the kernel knows, and where
# one of them is withheld from root (CAP_SYS_RESOURCE in many containers) no node starts.
build_runc() {
  local source file work=$BUILD/runc-source
  source=$(cd / && go mod download -json "github.com/opencontainers/runc@$RUNC_VERSION" | jq -r .Dir)
  rm -rf "$work"
  cp -r --no-preserve=mode "$source" "$work"
  file=$work/libcontainer/capabilities/capabilities.go
  sed -i 's|^\t\tcm\[capToStr(c)\] = c$|\t\tif ok, err := capability.GetBound(c); err == nil \&\& !ok {\n\t\t\tcontinue\n\t\t}\n&|' "$file"
  grep -q 'capability.GetBound(c)' "$file" || die "the change to runc $RUNC_VERSION did not apply"
  (cd "$work" && CGO_ENABLED=1 go build -tags "seccomp urfave_cli_no_docs netgo osusergo" \
    -ldflags "-s -w -linkmode external -extldflags -static" -o "$BIN/runc" .)
  rm -rf "$work"
}
build_containerd() {
  local module=github.com/containerd/containerd/v2 v=$CONTAINERD_VERSION
  GOBIN=$BIN go install -tags "no_btrfs no_devmapper no_zfs no_tracing" -ldflags "-s -w -X $module/version.Version=$v" \
    $module/cmd/containerd@$v $module/cmd/containerd-shim-runc-v2@$v $module/cmd/ctr@$v
}
build_cni() {
  local plugins=github.com/containernetworking/plugins/plugins v=$CNI_VERSION
  GOBIN=$BUILD/cni go install -ldflags "-s -w" \
    $plugins/main/bridge@$v $plugins/main/loopback@$v $plugins/ipam/host-local@$v $plugins/meta/portmap@$v
}
build_kind() { GOBIN=$BIN go install -ldflags "-s -w" sigs.k8s.io/kind@$KIND_VERSION; }
build_tools() { (cd "$KIND_DIR/tools" && go build -ldflags "-s -w" -o "$BIN" ./pause ./probe); }
build_rootfs() { # Debian with systemd: what a kind node boots. Debian 12's systemd still knows cgroup v1.
  mmdebstrap --quiet --format=tar --variant=minbase --mode=root \
    --include=systemd,systemd-sysv,dbus,conntrack,iptables,nftables,iproute2,ethtool,kmod,mount,procps,jq,ca-certificates,socat \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' bookworm "$BUILD/rootfs.tar.new"
  mv "$BUILD/rootfs.tar.new" "$BUILD/rootfs.tar"
}
build_images() { "$KIND_DIR/node-archives.sh"; }

# build PART: unless its key says that it is built already. A lock per part lets two runs share the work.
build() {
  local part=$1 start key rc stamp=$BUILD/stamp/$1
  start=$(now)
  exec 8>"$stamp.lock"
  flock -n 8 || { log "$part: waiting for another run that builds it"; flock 8; }
  key=$(key "$part")
  [ "$(cat "$stamp" 2>/dev/null)" != "$key" ] || return 0
  log "$(describe "$part")"
  date +%s >"$BUSY/$part"
  set +e # inside an `if`, errors in the subshell would not end it
  (
    set -e
    "build_$part"
  ) >"$BUILD/log/$part.log" 2>&1
  rc=$?
  set -e
  rm -f "$BUSY/$part"
  if [ $rc != 0 ]; then
    tail -20 "$BUILD/log/$part.log" >&2
    die "$part failed; the whole log is $BUILD/log/$part.log"
  fi
  echo "$key" >"$stamp"
  log "$part: built in $(seconds_since "$start") s"
}
lane() {
  local part
  for part in "$@"; do
    if wanted "$part"; then build "$part"; fi
  done
}
wanted() { [ ${#PARTS[@]} -eq 0 ] || [[ " ${PARTS[*]} " == *" $1 "* ]]; }
still_building() {
  local file line=
  for file in "$BUSY"/*; do
    [ -e "$file" ] && line+=" ${file##*/} ($(($(date +%s) - $(cat "$file"))) s)"
  done
  [ -z "$line" ] || log "still building:$line"
}
finish() { # every job is a process group of its own (set -m)
  local job
  for job in $(jobs -p); do kill -- "-$job" 2>/dev/null || true; done
  rm -rf "$BUSY"
}

PARTS=("$@")
for part in "$@"; do describe "$part" >/dev/null; done
command -v go >/dev/null || die "go is not in PATH; install Go 1.21 or newer (https://go.dev/dl), it fetches the version needed"
BUSY=$(mktemp -d) # a file a part that is being built, with the time it was started
set -m
trap finish EXIT
heartbeat 30 still_building &
lane kube &
kube=$!
lane packages runc rootfs containerd cni kind tools &
rest=$!
set +m
wait -n "$kube" "$rest" # a failure of either ends the run
wait "$kube"
wait "$rest"
lane images
