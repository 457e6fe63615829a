"""A local server that speaks the OpenAI chat API, for tests and trials without a model.

`python -m tests.openai_server --port P` (0 chooses a port and prints it). It listens on 127.0.0.1
only, and every answer follows from the request alone.
"""

import argparse
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.openai_answers import act, rewrite

MODEL = "test"


@dataclass
class Behaviour:
    """What the server does besides answering well."""

    no_tools: bool = False
    """Refuse requests with tools, as a server of a model without tool calling does."""
    fail: int = 0
    """Answer the first requests with 503."""
    slow: float = 0.0
    """Seconds before every answer."""
    refuse: tuple[int, str] | None = None
    """A status and a message that answer every request."""
    script: list[dict[str, Any]] = field(default_factory=list)
    """Messages that are answered first, one a request; `{"status": 503}` fails with that."""


class Serving:
    """A running server: where it is, and what it was asked."""

    def __init__(self, behaviour: Behaviour, port: int = 0) -> None:
        self.behaviour = behaviour
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.lock = threading.Lock()
        self.http = ThreadingHTTPServer(("127.0.0.1", port), self._handler())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}/v1"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        serving = self

        class Handler(BaseHTTPRequestHandler):
            wbufsize = -1  # head and body in one packet

            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                if self.path.rstrip("/") == "/v1/models":
                    model = {"id": MODEL, "object": "model", "owned_by": "tests", "created": 0}
                    self.send(200, {"object": "list", "data": [model]})
                else:
                    self.send(404, _error(f"no {self.path}", "not_found"))

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                if self.path.rstrip("/") != "/v1/chat/completions":
                    self.send(404, _error(f"no {self.path}", "not_found"))
                    return
                try:
                    request = json.loads(body)
                except ValueError:
                    self.send(400, _error("the body is not JSON", "invalid_request_error"))
                    return
                self.send(*serving.answer(request, self.headers.get("Authorization") or ""))

            def send(self, status: int, value: dict[str, Any]) -> None:
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        return Handler

    def answer(self, request: dict[str, Any], key: str) -> tuple[int, dict[str, Any]]:
        behaviour = self.behaviour
        with self.lock:
            self.requests.append(request)
            self.keys.append(key)
            failing = len(self.requests) <= behaviour.fail
            scripted = behaviour.script.pop(0) if behaviour.script and not failing else None
        time.sleep(behaviour.slow)
        if failing or "status" in (scripted or {}):
            return (scripted or {}).get("status", 503), _error(
                "the model is loading", "server_error"
            )
        if behaviour.refuse:
            return behaviour.refuse[0], _error(behaviour.refuse[1], "invalid_request_error")
        if behaviour.no_tools and request.get("tools"):
            return 400, _error(f"{MODEL} does not support tools", "invalid_request_error")
        if request.get("stream"):
            return 400, _error("streaming is not supported", "invalid_request_error")
        return 200, _completion(request, scripted or message(request))

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


def message(request: dict[str, Any]) -> dict[str, Any]:
    """The assistant message that answers a request."""
    if request.get("tools"):
        return act(request["messages"], request["tools"])
    return {"role": "assistant", "content": rewrite(request)}


def _error(text: str, kind: str) -> dict[str, Any]:
    return {"error": {"message": text, "type": kind, "code": None, "param": None}}


def _completion(request: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    sent = len(json.dumps([request.get("messages"), request.get("tools")])) // 4
    written = len(json.dumps(answer)) // 4
    return {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 0,
        "model": request.get("model", MODEL),
        "choices": [
            {
                "index": 0,
                "message": answer,
                "finish_reason": "tool_calls" if answer.get("tool_calls") else "stop",
            }
        ],
        "usage": {
            "prompt_tokens": sent,
            "completion_tokens": written,
            "total_tokens": sent + written,
        },
    }


@contextmanager
def serving(**behaviour: Any) -> Iterator[Serving]:
    """A server for the time of a block, and what it was asked."""
    server = Serving(Behaviour(**behaviour))
    thread = threading.Thread(target=server.http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()


@contextmanager
def openai_server(**behaviour: Any) -> Iterator[str]:
    """The base URL of a server that runs for the time of a block."""
    with serving(**behaviour) as server:
        yield server.url


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.openai_server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: choose one and print it")
    parser.add_argument("--no-tools", action="store_true", help="refuse tools with 400")
    parser.add_argument("--fail", type=int, default=0, metavar="N", help="503 for N requests")
    parser.add_argument("--slow", type=float, default=0.0, metavar="S", help="seconds an answer")
    options = parser.parse_args(arguments)
    server = Serving(Behaviour(options.no_tools, options.fail, options.slow), options.port)
    print(server.http.server_address[1] if options.port == 0 else server.url, flush=True)
    try:
        server.http.serve_forever()
    except KeyboardInterrupt:
        return 130
    finally:
        server.http.server_close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
