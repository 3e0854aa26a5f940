#!/usr/bin/env bash
# install.sh DIR: the CPU engine's Python 3.11 environment in DIR (1 to 2 min, 1.5 GB on disk while it works, half of
# it when done). An environment that these same files made is left alone.
# Needs a C and a C++ compiler and binutils; only on x86-64, the one architecture that the stubs are made for.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$HERE/../../.." && pwd)
TARGET=${1:?usage: install.sh DIR}
WORK=$TARGET.new
# Settings of the caller's own Python must not reach this one; the bytecode that it writes is part of the result.
unset PYTHONDONTWRITEBYTECODE PYTHONHOME PYTHONPATH PYTHONPYCACHEPREFIX VIRTUAL_ENV

log() { printf '[%s] engine environment: %s\n' "$(date +%H:%M:%S)" "$*" >&2; }
die() {
  log "ERROR: $*"
  exit 1
}
content_key() { (cd "$HERE" && find . -type f -not -path '*/__pycache__/*' -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16); }

require_tools() {
  local tool missing=()
  [ "$(uname -m)" = x86_64 ] || die "made for x86_64 only; this is $(uname -m)"
  for tool in gcc g++ readelf strip; do command -v "$tool" >/dev/null || missing+=("$tool"); done
  if [ ${#missing[@]} -gt 0 ]; then
    if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
      die "missing: ${missing[*]}; on Debian and Ubuntu: sudo apt-get install g++ binutils"
    fi
    log "installing g++ and binutils (20 s)"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends \
      g++ binutils >/dev/null
  fi
}
# The uv that the repository's own environment is made with.
find_uv() {
  [ -x "$ROOT/.uv/env/bin/uv" ] || make -C "$ROOT" venv >&2
  echo "$ROOT/.uv/env/bin/uv"
}
install_packages() {
  local uv
  uv=$(find_uv)
  # A cache of its own on the same disk: files are linked, not copied, and nothing is left behind.
  export UV_CACHE_DIR=$WORK/uv-cache
  "$uv" venv --quiet --relocatable --python 3.11 "$WORK/env"
  "$uv" pip install --quiet --python "$WORK/env/bin/python" --no-deps --requirements "$HERE/requirements.txt"
  rm -rf "$UV_CACHE_DIR"
}
# An entry point makes SGLang find the plugin; the metadata beside it is all that an installer would add.
add_own_packages() {
  local info=$1/sglang_cpu_engine-1.dist-info
  cp -r "$HERE"/standins/* "$HERE"/plugin/sglang_cpu_engine "$1/"
  mkdir "$info"
  printf 'Metadata-Version: 2.1\nName: sglang-cpu-engine\nVersion: 1\n' >"$info/METADATA"
  printf '[sglang.srt.plugins]\ncpu_engine = sglang_cpu_engine:register\n' >"$info/entry_points.txt"
}
# With the flags that SGLang's own build at first use has.
compile_ngram_corpus() {
  local source=$1/sglang/kernels/jit
  g++ -shared -fPIC -std=c++20 -O3 -I"$1/tvm_ffi/include" -I"$source/include" "$source"/csrc/ngram_corpus/*.cpp \
    -L"$1/tvm_ffi/lib" -ltvm_ffi -o "$1/sglang_cpu_engine/ngram_corpus.so" -w
}

key=$(content_key)
if [ "$(cat "$TARGET/key" 2>/dev/null)" = "$key" ]; then exit 0; fi
require_tools
start=$SECONDS
rm -rf "$WORK"
mkdir -p "$WORK"
log "installing packages (0.8 GB to download: 30 to 60 s)"
install_packages
packages=$WORK/env/lib/python3.11/site-packages
add_own_packages "$packages"
log "compiling the NGRAM corpus (15 s)"
compile_ngram_corpus "$packages"
log "trimming (10 s)"
log "$(cd "$ROOT" && "$WORK/env/bin/python" -m images.engine.cpu.trim "$packages")"
log "compiling and checking the modules of a server (30 s)"
SGLANG_USE_CPU_ENGINE=1 TORCHDYNAMO_DISABLE=1 "$WORK/env/bin/python" "$HERE/precompile.py" "$packages" >"$WORK/precompile.log" 2>&1 || {
  tail -20 "$WORK/precompile.log" >&2
  die "a module of the server cannot be imported"
}
find "$WORK/env/bin" -not -name 'python*' -type f -delete
echo "$key" >"$WORK/env/key"
rm -rf "$TARGET"
mv "$WORK/env" "$TARGET"
rm -rf "$WORK"
log "$(du -sm "$TARGET" | cut -f1) MB in $TARGET after $((SECONDS - start)) s"
