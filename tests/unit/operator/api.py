"""An API server reduced to what the executor is told: answers given by the test."""

from collections.abc import Callable
from typing import Any

from sglang_controllers.manifest import Manifest
from sglang_operator.kube import ApiError, Kube

Answer = Manifest | Exception
Request = tuple[str, str]


class ScriptedApi:
    """Answers each request by its method and path, and notes it. Without a script: 404."""

    def __init__(self) -> None:
        self.answers: dict[Request, list[Answer]] = {}
        self.requests: list[Request] = []
        self.bodies: list[Any] = []
        self.queries: list[dict[str, str]] = []
        self.when_asked: Callable[[Request], None] = lambda _: None

    def on(self, method: str, path: str, *answers: Answer) -> None:
        """The last of several answers is given for ever."""
        self.answers[method, path] = list(answers)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: object = None,
        content_type: str = "",
    ) -> Manifest:
        del content_type
        self.requests.append((method, path))
        self.bodies.append(body)
        self.queries.append(query or {})
        self.when_asked((method, path))
        answers = self.answers.get((method, path), [ApiError(404, "NotFound", "none")])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def kube(self) -> Kube:
        """The real client, over these answers."""
        client = Kube.__new__(Kube)
        client.request = self.request  # type: ignore[method-assign,assignment]
        return client
