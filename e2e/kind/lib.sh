# shellcheck shell=bash
# Helpers of the scripts here: messages, waiting, processes that only their starter may stop, image archives.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

log() { printf '[%s] %s\n' "$(date +%H:%M:%S)" "$*" >&2; }
die() {
  log "ERROR: $*"
  exit 1
}
# at_exit COMMAND: when this script ends. A background job that is killed just after its fork runs its parent's EXIT
# trap, and takes itself for the parent ($BASHPID too): only the kernel knows better.
at_exit() {
  AT_EXIT=$1
  trap 'if is_this_script; then eval "$AT_EXIT"; fi' EXIT
}
is_this_script() {
  local pid
  read -r pid _ 2>/dev/null </proc/self/stat || pid=$$
  [ "$pid" = $$ ]
}
# seconds_since START: with one decimal, for START=$(now)
now() { date +%s.%N; }
seconds_since() { awk -v a="$1" -v b="$(now)" 'BEGIN {printf "%.1f", b - a}'; }
# retry SECONDS CMD...: run CMD until it succeeds
retry() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS >= end)); then
      log "gave up waiting for: $*"
      "$@" >&2 || true
      return 1
    fi
    sleep 0.2
  done
}

# Processes are recorded as pid, start time and boot id, so that only what these scripts started is ever stopped.
boot_id() { cat /proc/sys/kernel/random/boot_id; }
# start_time PID: in clock ticks; nothing when the process is gone or a zombie nobody has reaped yet
start_time() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk '$1 != "Z" {print $20}'; }
# spawn DIR NAME CMD...: CMD in the background; log in DIR/log, identity in DIR/pid. It keeps no file of the caller open:
# a lock would be held, and a pipe never end, for as long as CMD runs.
spawn() {
  local dir=$1 name=$2
  shift 2
  mkdir -p "$dir/log" "$dir/pid"
  setsid "$@" >"$dir/log/$name.log" 2>&1 </dev/null 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- &
  echo "$! $(start_time $!) $(boot_id)" >"$dir/pid/$name"
  disown
}
# running DIR NAME: the pid, if exactly that process still runs
running() {
  local pid start boot
  [ -f "$1/pid/$2" ] && read -r pid start boot <"$1/pid/$2" || return 1
  [ "$boot" = "$(boot_id)" ] && [ -n "$start" ] && [ "$(start_time "$pid")" = "$start" ] && echo "$pid"
}
# halt DIR NAME [SIGNAL]: end a process that spawn started; KILL after 30 s
halt() {
  local pid end=$((SECONDS + 30))
  if pid=$(running "$1" "$2"); then
    kill -"${3:-TERM}" "$pid" 2>/dev/null || true
    while running "$1" "$2" >/dev/null && ((SECONDS < end)); do sleep 0.1; done
    if running "$1" "$2" >/dev/null; then kill -KILL "$pid" 2>/dev/null || true; fi
  fi
  rm -f "$1/pid/$2"
}

# heartbeat SECONDS CMD...: run CMD every SECONDS until killed. A sleep would outlive the kill, holding stdout open.
heartbeat() {
  local seconds=$1
  shift
  while true; do
    read -rt "$seconds" <> <(:) || true
    "$@"
  done
}
# watched WHAT CMD...: run CMD, saying every 30 s that it is still at work
watched() {
  local what=$1 beat rc=0
  shift
  heartbeat 30 log "still at work: $what" &
  beat=$!
  "$@" || rc=$?
  kill "$beat"
  wait "$beat" 2>/dev/null || true
  return $rc
}

# images_in ARCHIVE: a line "NAME CONFIG" for each image, the name in full, the config's sha256 as it says what is in it
images_in() {
  local manifest
  [ -r "$1" ] || die "$1: no such image archive"
  manifest=$(tar -xOf "$1" manifest.json 2>/dev/null) || die "$1 is not what docker save writes: it has no manifest.json"
  python3 -c '
import json, sys
for image in json.load(sys.stdin):
    for name in image["RepoTags"]:
        first, slash, _ = name.partition("/")
        if not slash:
            name = f"docker.io/library/{name}"
        elif not any(mark in first for mark in ".:") and first != "localhost":
            name = f"docker.io/{name}"
        print(name, image["Config"].rsplit("/")[-1].removesuffix(".json"))' <<<"$manifest"
}
size_mb() { echo $(($(stat -L -c %s "$1") / 1000000)); }
