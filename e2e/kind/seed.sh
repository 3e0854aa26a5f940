#!/usr/bin/env bash
# seed.sh add IMAGE.tar... | clone DIR
#   add    unpacks image archives, each once, into a containerd folder of the cache: the seed
#   clone  makes DIR a containerd folder with all that the seed has, by hard links (0.3 s for 1.7 GB)
# Unpacked layers are only ever read, for a container writes to folders of its own; so any number of nodes can
# share their files. containerd's databases, small and written to, are copied.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
SEED=$BUILD/seed
CTR="ctr -a $SEED/state/containerd.sock -n k8s.io"

# recorded ARCHIVE: whether every image of it is in the seed, as it is in the archive
recorded() {
  local images
  images=$(images_in "$1") || exit 1
  ! grep -qvxFf "$SEED/images" <<<"$images"
}
record() {
  local name config
  images_in "$1" | while read -r name config; do
    grep -v "^$name " "$SEED/images" >"$SEED/images.new" || true
    echo "$name $config" >>"$SEED/images.new"
    mv "$SEED/images.new" "$SEED/images"
  done
}
start_containerd() {
  mkdir -p "$SEED"/{root,state}
  cat >"$SEED/config.toml" <<C
version = 3
root = "$SEED/root"
state = "$SEED/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"]
[grpc]
  address = "$SEED/state/containerd.sock"
C
  spawn "$SEED" containerd "$BIN/containerd" --config "$SEED/config.toml"
  at_exit 'halt "$SEED" containerd'
  # shellcheck disable=SC2086 # a command with its options
  retry 20 $CTR version
}
# The layers' archives are dropped once they are unpacked: a node needs only the files.
unpack() {
  local start
  start=$(now)
  log "${1##*/}: unpacking, once for all nodes ($(size_mb "$1") MB, about 15 s per GB)"
  # shellcheck disable=SC2086
  watched "unpacking ${1##*/}" $CTR images import --local --discard-unpacked-layers "$1" >"$SEED/import.log" 2>&1 || {
    tail -5 "$SEED/import.log" >&2
    die "$1 could not be unpacked"
  }
  record "$1"
  log "${1##*/}: unpacked in $(seconds_since "$start") s"
}
add() {
  local archive missing=()
  mkdir -p "$SEED"
  touch "$SEED/images"
  exec 8>"$SEED/lock"
  flock 8
  for archive in "$@"; do recorded "$archive" || missing+=("$archive"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  start_containerd
  for archive in "${missing[@]}"; do unpack "$archive"; done
}
clone() {
  local part
  rm -rf --one-file-system "$1"
  mkdir -p "$1"
  for part in io.containerd.content.v1.content io.containerd.snapshotter.v1.overlayfs; do
    cp -al "$SEED/root/$part" "$1/" || cp -a "$SEED/root/$part" "$1/"
  done
  rm -f "$1"/io.containerd.snapshotter.v1.overlayfs/metadata.db
  cp -a "$SEED"/root/io.containerd.snapshotter.v1.overlayfs/metadata.db "$1/io.containerd.snapshotter.v1.overlayfs/"
  cp -a "$SEED/root/io.containerd.metadata.v1.bolt" "$1/"
}

case ${1:-} in
  add) add "${@:2}" ;;
  clone) clone "$2" ;;
  *) die "usage: seed.sh add IMAGE.tar... | clone DIR" ;;
esac
