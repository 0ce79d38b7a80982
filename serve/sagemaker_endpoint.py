"""A snake as a SageMaker endpoint: `GET /ping` and `POST /invocations` on port 8080 (`python -m
serve.sagemaker_endpoint`).

An endpoint has a single address, so callers send the call's name (info, start, move or end) in the
custom attributes. The platform stops a container with SIGTERM and kills it 30 s later."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

from envs.common.errors import ProcsnakeError

PORT = 8080
MODEL_FOLDER = "/opt/ml/model"
"""The folder into which SageMaker unpacks the model's archive, a bundle."""
ATTRIBUTES = "HTTP_X_AMZN_SAGEMAKER_CUSTOM_ATTRIBUTES"
_CALLS = {
    "info": ("GET", "/"),
    "start": ("POST", "/start"),
    "move": ("POST", "/move"),
    "end": ("POST", "/end"),
}

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Endpoint:
    """A snake's WSGI application behind an endpoint's two addresses. Other addresses are passed
    through.

    `/ping` is `/health`. `/invocations` is the call that the custom attributes name, or `move` if
    they are empty."""

    def __init__(self, application: Wsgi) -> None:
        self._application = application

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        call = environ.get("REQUEST_METHOD"), environ.get("PATH_INFO")
        if call == ("GET", "/ping"):
            environ = {**environ, "PATH_INFO": "/health"}
        elif call == ("POST", "/invocations"):
            method, path = _CALLS.get(environ.get(ATTRIBUTES) or "move", call)
            environ = {**environ, "REQUEST_METHOD": method, "PATH_INFO": path}
        return self._application(environ, start_response)


def main() -> int:
    """Serve the model's bundle until SIGTERM. Without a bundle, serve the agent that
    `PROCSNAKE_AGENT` names.
    """
    import agents
    from serve.arena import create_app
    from serve.monitoring import logs
    from serve.server import keep_from_garbage_search, listen, warm_up

    logs.configure()
    name = os.environ.get("PROCSNAKE_AGENT", "flood")
    if os.path.isfile(os.path.join(MODEL_FOLDER, "card.json")):
        name = MODEL_FOLDER
    agent = agents.make(name)
    app = create_app(agent)
    app.wsgi_app = Endpoint(app.wsgi_app)  # type: ignore[method-assign]
    server = listen(app, host="0.0.0.0", port=int(os.environ.get("SAGEMAKER_BIND_TO_PORT", PORT)))
    warm_up({agent.name: agent})
    keep_from_garbage_search()
    server.open()
    server.announce(f"serving {agent.name} at {server.url}")
    server.run()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ProcsnakeError as error:
        sys.exit(f"procsnake: {error}")
