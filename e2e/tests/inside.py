"""Programs that tests run inside an engine's container, by python3 -c."""

KILL = """
import os, pathlib, signal, sys
for folder in pathlib.Path("/proc").iterdir():
    if folder.name.isdigit() and folder.name not in ("1", str(os.getpid())):
        command = (folder / "cmdline").read_bytes()
        agent = b"sglang-agent" in command
        if agent == (sys.argv[1] == "agent") and b"sglang" in command:
            os.kill(int(folder.name), signal.SIGKILL)
"""
"""Argument: `agent` or `engine`. No process has time to say good-bye."""

SLOW = """
import json, urllib.request
body = json.dumps({"forward_sleep_time": 3}).encode()
headers = {"Content-Type": "application/json"}
urllib.request.urlopen(
    urllib.request.Request("http://127.0.0.1:30000/slow_down", body, headers), timeout=20
)
"""
"""A token every three seconds from now on."""

ASK = """
import sys, urllib.request
for body in sys.argv[2:]:
    request = urllib.request.Request(
        "http://127.0.0.1:30000" + sys.argv[1], body.encode(), {"Content-Type": "application/json"}
    )
    print(urllib.request.urlopen(request, timeout=60).read().decode())
"""
"""Asks the engine: a path, and JSON bodies, one request after the other. Prints an answer a line."""
