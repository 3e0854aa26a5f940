"""Runs a health check as Argo CD does (util/lua/lua.go of v3.5.1)."""

from pathlib import Path
from typing import Any

from lupa.lua51 import LuaRuntime  # Argo CD's own interpreter, gopher-lua, is a Lua 5.1

from tests.unit.chart.render import CHART, ROOT

HEALTH = CHART / "files/argocd/health.lua"
RECORDED = ROOT / "tests/data/argocd"

KEY = "resource.customizations.health.sglang.dev_SGLangCluster"
"""Where Argo CD looks for the script in its ConfigMap argocd-cm."""

CLOSED = ("string", "math", "io", "os", "coroutine", "debug")
"""Libraries that Argo CD leaves out. Its os has functions of time only, which nothing needs here."""

PHASES: dict[str, tuple[str, str]] = {
    "new": ("Progressing", "waiting for the operator to see the SGLangCluster"),
    "starting": ("Progressing", "Starting: 0 of 2 replicas ready"),
    "waiting-for-gpu": ("Progressing", "WaitingForGPU: "),
    "serving": ("Healthy", "Serving: 2 replicas of the current revision serve"),
    "behind": ("Progressing", "waiting for the operator to see the change"),
    "rolling-out": ("Progressing", "RollingOut: revision "),
    "stalled-while-serving": ("Degraded", "EngineCrash: "),
    "stalled": ("Degraded", "ImagePull: "),
    "bad-arguments": ("Degraded", "BadEngineArgs: "),
    "paused": ("Suspended", "Paused: spec.paused is true"),
    "scaled-to-zero": ("Healthy", "ScaledToZero: spec.replicas is 0: no engine runs"),
    "deleted": ("Progressing", "being deleted"),
}
"""Health by phase, and how its message begins. RECORDED has an object of each."""


def health(manifest: dict[str, Any], script: Path = HEALTH) -> tuple[str, str]:
    """Status and message that Argo CD shows for an object."""
    lua = LuaRuntime(register_eval=False, register_builtins=False, unpack_returned_tuples=True)
    lua.execute('getmetatable("").__index = nil')  # no ("text"):upper() either
    for library in CLOSED:
        lua.globals()[library] = None
    lua.globals().python = None
    lua.globals().obj = lua.table_from(manifest, recursive=True)
    answer = lua.execute(script.read_text())
    return str(answer["status"]), str(answer["message"] or "")
