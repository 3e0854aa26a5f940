#!/usr/bin/env bash
# base.sh python | uv: prints the name of the image to build on, made here where the public one cannot be pulled.
#   python   docker.io/library/python:3.11-slim-bookworm, or a Debian 12 root with Debian's Python 3.11
#   uv       ghcr.io/astral-sh/uv, or the uv of `make venv`
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=e2e/kind/lib.sh
. "$ROOT/e2e/kind/lib.sh"
PUBLIC_PYTHON=docker.io/library/python:3.11-slim-bookworm
OWN_PYTHON=docker.io/sglang-operator/python:3.11-bookworm-3
# On every image made here, and on those built from one: build.sh removes them when nothing names them any more.
IMAGE_LABEL=dev.sglang.image=true
# Packages that only usrmerge pulls in; the root is made with merged folders anyway.
USRMERGE="usrmerge libfile-find-rule-perl libnumber-compare-perl libtext-glob-perl perl perl-modules-5.36 libperl5.36"

present() { docker image inspect "$1" >/dev/null 2>&1; }
public() { present "$1" || timeout 300 docker pull --quiet "$1" >/dev/null 2>&1; }

# A root with Python and without apt, Perl, compilers or documentation (82 MB). It trusts the certificates that this machine
# trusts, as builds in it reach package indexes the way this machine does.
debian_root() {
  local exclude folder root
  root=$CACHE/images/python.tar
  command -v mmdebstrap >/dev/null || "$KIND_DIR/build.sh" packages >&2
  log "base image: making a Debian root with Python (1 to 2 min), as $PUBLIC_PYTHON cannot be pulled"
  exclude=()
  for folder in /usr/share/doc /usr/share/man /usr/share/info /usr/share/locale '/usr/lib/*/gconv'; do
    exclude+=("--dpkgopt=path-exclude=$folder/*")
  done
  # shellcheck disable=SC2016 # $1 is mmdebstrap's
  watched "the base image" mmdebstrap --quiet --format=tar --variant=essential --mode=root "${exclude[@]}" \
    --include=usr-is-merged,python3,libstdc++6 \
    --customize-hook='install -D -m 0644 /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/ca-certificates.crt"' \
    --customize-hook="dpkg --root=\"\$1\" --purge $USRMERGE >/dev/null" \
    --customize-hook='dpkg --root="$1" --purge --force-remove-essential --force-depends perl-base >/dev/null' \
    bookworm "$root.new"
  docker import --change 'CMD ["python3"]' --change "LABEL $IMAGE_LABEL" "$root.new" "$OWN_PYTHON" >/dev/null
  rm -f "$root.new"
}
python() {
  if present "$OWN_PYTHON"; then echo "$OWN_PYTHON"; return; fi
  if public "$PUBLIC_PYTHON"; then echo "$PUBLIC_PYTHON"; return; fi
  debian_root
  echo "$OWN_PYTHON"
}
uv() {
  local version binary=$ROOT/.uv/env/bin/uv own wanted
  wanted=$(sed -n 's/^ARG UV=//p' "$ROOT/Dockerfile")
  own=docker.io/sglang-operator/uv:${wanted##*:}
  if present "$own"; then echo "$own"; return; fi
  if public "$wanted"; then echo "$wanted"; return; fi
  [ -x "$binary" ] || make -C "$ROOT" venv >&2
  version=$("$binary" --version | cut -d' ' -f2)
  [ "$version" = "${wanted##*:}" ] || die "Dockerfile names uv ${wanted##*:}, make venv installs $version: they must be the same"
  tar -C "$(dirname "$binary")" -c uv | docker import - "$own" >/dev/null
  echo "$own"
}

mkdir -p "$CACHE/images"
case ${1:-} in
  python | uv) "$1" ;;
  *) die "usage: base.sh python | uv" ;;
esac
