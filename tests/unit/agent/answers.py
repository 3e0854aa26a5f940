"""Answers of SGLang 0.5.23, shortened to what is read."""

import json
from datetime import UTC, datetime

NOW_S = 1793534400.0


def loads(*held: tuple[int, int], age_s: float = 0.5, now_s: float = NOW_S) -> str:
    """The answer of /v1/loads: running and waiting requests of each rank."""
    ranks = [
        {
            "timestamp": now_s - age_s,
            "dp_rank": rank,
            "num_running_reqs": running,
            "num_waiting_reqs": waiting,
            "token_usage": 0.1,
        }
        for rank, (running, waiting) in enumerate(held)
    ]
    now = datetime.fromtimestamp(now_s, UTC).isoformat()
    return json.dumps({"timestamp": now, "version": "0.5.23", "loads": ranks})


METRICS = """\
# HELP sglang:http_requests_total Total number of HTTP requests by endpoint and method
# TYPE sglang:http_requests_total counter
sglang:http_requests_total{endpoint="/generate",method="POST"} 41.0
# HELP sglang:http_requests_active Number of currently active HTTP requests
# TYPE sglang:http_requests_active gauge
sglang:http_requests_active{endpoint="/ready",method="GET"} 1.0
sglang:http_requests_active{endpoint="/generate",method="POST"} 2.0
sglang:http_requests_active{endpoint="/v1/chat/completions",method="POST"} 3.0
sglang:http_requests_active{endpoint="/metrics",method="GET"} 1.0
sglang:http_requests_active{endpoint="/odd}\\",method=\\"GET",method="PUT"} 1.0
sglang:http_requests_active{endpoint="/v1/loads",method="GET"} 1.0
"""
