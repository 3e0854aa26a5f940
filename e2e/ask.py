#!/usr/bin/env python3
"""Ask a SGLangCluster a question through its Service and print the answer.

The request goes to the API server, which proxies it to the Service, so that nothing but kubectl's
own access to the cluster is needed. Only the standard library and kubectl are used.
"""

import argparse
import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ANSWER_TIMEOUT_S = 300
"""An engine on two CPU cores writes 10 tokens in a second, and may be busy with others."""

PROXY_ADDRESS = re.compile(r"Starting to serve on (\S+)")

# The proxy is on this machine: an HTTP proxy of the environment must not be asked for it.
LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@contextmanager
def service_url(namespace: str, cluster: str) -> Iterator[str]:
    """The cluster's Service as a URL on this machine, for as long as the context lasts."""
    with subprocess.Popen(
        ["kubectl", "proxy", "--port=0"], stdout=subprocess.PIPE, text=True
    ) as proxy:
        try:
            found = PROXY_ADDRESS.search(proxy.stdout.readline() if proxy.stdout else "")
            if not found:
                raise SystemExit(
                    "ask.py: kubectl proxy did not start; does `kubectl get nodes` work?"
                )
            path = f"api/v1/namespaces/{namespace}/services/{cluster}:http/proxy"
            yield f"http://{found[1]}/{path}"
        finally:
            proxy.terminate()


def call(url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """The JSON that a GET, or with a body a POST, is answered with."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
    try:
        with LOCAL.open(request, timeout=ANSWER_TIMEOUT_S) as response:
            answer: dict[str, Any] = json.load(response)
    except urllib.error.HTTPError as error:
        said = error.read().decode(errors="replace")[:500]
        raise SystemExit(f"ask.py: {url} answered {error.code}: {said}") from error
    return answer


def chat(url: str, question: str, max_tokens: int) -> dict[str, Any]:
    served_name = call(f"{url}/v1/models")["data"][0]["id"]
    return call(
        f"{url}/v1/chat/completions",
        {
            "model": served_name,
            "messages": [{"role": "user", "content": question}],
            "temperature": 0,
            "max_tokens": max_tokens,
        },
    )


def parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Ask a SGLangCluster a question.")
    parser.add_argument("question")
    parser.add_argument("-c", "--cluster", default="smollm2", help="default: smollm2")
    parser.add_argument("-n", "--namespace", default="default", help="default: default")
    parser.add_argument("--max-tokens", type=int, default=64, help="of the answer, default: 64")
    parser.add_argument("--expect", help="fail unless the answer contains this")
    return parser.parse_args()


def main() -> int:
    arguments = parsed_arguments()
    start = time.monotonic()
    with service_url(arguments.namespace, arguments.cluster) as url:
        reply = chat(url, arguments.question, arguments.max_tokens)
    answer = reply["choices"][0]["message"]["content"].strip()
    print(answer)
    tokens, took_s = reply["usage"]["completion_tokens"], time.monotonic() - start
    print(f"({tokens} tokens of {reply['model']} in {took_s:.1f} s)", file=sys.stderr)
    if arguments.expect and arguments.expect not in answer:
        print(f"ask.py: expected {arguments.expect!r} in the answer", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
