"""A contract server: Ollama's documented endpoints, as strict as the real one, answering with a GGUF-less echo.

Refuses what Ollama refuses: a blob whose hash is not its name, a create that names blobs it does not have, unknown
fields, adapters and quantising of a GGUF on import. Every request is kept in `requests`. Standard library only; it is
what the delivery was tested against, not Ollama itself.
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CREATE_FIELDS = {"model", "from", "files", "template", "license", "system", "parameters", "messages", "stream"}
CHAT_FIELDS = {"model", "messages", "options", "stream", "keep_alive", "format", "tools", "think"}
PARAMETERS = {
    "num_ctx": int, "repeat_last_n": int, "repeat_penalty": float, "temperature": float, "seed": int, "stop": list,
    "num_predict": int, "top_k": int, "top_p": float, "min_p": float, "typical_p": float, "presence_penalty": float,
    "frequency_penalty": float,
}  # fmt: skip


class Refused(Exception):
    def __init__(self, status: int, error: str) -> None:
        self.status, self.error = status, error


@dataclass
class State:
    """What the server holds, and how the machine it plays behaves."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    loaded: str = ""
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    gpu_share: float = 1.0
    context: int | None = None
    """Context it gives; None = what the model asks for."""
    tokens_per_s: float = 40.0
    disk_full: bool = False
    reply: str = "I'm Ada."


class OllamaServer:
    """`with OllamaServer() as server:` listens on 127.0.0.1:server.port."""

    def __init__(self) -> None:
        self.state = State()
        state = self.state

        class Handler(_Handler):
            pass

        Handler.state = state
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.port = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)

    def __enter__(self) -> OllamaServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    state: State

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def do_HEAD(self) -> None:
        self.state.requests.append(("HEAD", self.path, None))
        known = self.path.removeprefix("/api/blobs/") in self.state.blobs
        self.send_response(200 if known else 404)
        self.end_headers()

    def do_GET(self) -> None:
        self._answer("GET", None)

    def do_POST(self) -> None:
        self._answer("POST", self.rfile.read(int(self.headers["Content-Length"])))

    def do_DELETE(self) -> None:
        self._answer("DELETE", self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, method: str, data: bytes | None) -> None:
        try:
            status, lines = self._route(method, data)
        except Refused as refused:
            status, lines = refused.status, [{"error": refused.error}]
        body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _route(self, method: str, data: bytes | None) -> tuple[int, list[Any]]:
        if method == "POST" and self.path.startswith("/api/blobs/"):
            self.state.requests.append((method, self.path, len(data or b"")))
            return self._blob(self.path.removeprefix("/api/blobs/"), data or b"")
        body = json.loads(data) if data else None
        self.state.requests.append((method, self.path, body))
        routes = {
            ("GET", "/api/version"): lambda: (200, [{"version": "0.34.2"}]),
            ("GET", "/api/tags"): self._tags,
            ("GET", "/api/ps"): self._ps,
            ("POST", "/api/show"): lambda: self._show(body),
            ("POST", "/api/create"): lambda: self._create(body),
            ("POST", "/api/copy"): lambda: self._copy(body),
            ("POST", "/api/chat"): lambda: self._chat(body),
            ("DELETE", "/api/delete"): lambda: self._delete(body),
        }
        if (method, self.path) not in routes:
            raise Refused(404, f"404 page not found: {method} {self.path}")
        return routes[method, self.path]()

    def _blob(self, name: str, data: bytes) -> tuple[int, list[Any]]:
        if self.state.disk_full:
            raise Refused(500, "write /usr/share/ollama/.ollama/models/blobs: no space left on device")
        actual = f"sha256:{hashlib.sha256(data).hexdigest()}"
        if actual != name:
            raise Refused(400, f"digest mismatch, expected {name!r}, got {actual!r}")
        self.state.blobs[name] = data
        return 201, []

    def _create(self, body: dict[str, Any]) -> tuple[int, list[Any]]:
        if "adapters" in body:
            raise Refused(400, "adapters are no longer supported")
        if "quantize" in body:
            raise Refused(400, "quantization of GGUF models is not supported")
        if unknown := set(body) - CREATE_FIELDS:
            raise Refused(400, f"unknown field {sorted(unknown)[0]!r}")
        if not body.get("files") and not body.get("from"):
            raise Refused(400, "neither 'from' or 'files' was specified")
        for name, digest in body.get("files", {}).items():
            if "/" in name or digest not in self.state.blobs:
                raise Refused(400, f"invalid file {name!r} or digest {digest!r}")
            if not self.state.blobs[digest].startswith(b"GGUF"):
                return 200, [{"status": "parsing GGUF"}, {"error": "invalid file magic"}]
        for name, value in body.get("parameters", {}).items():
            if name not in PARAMETERS:
                raise Refused(400, f"unknown parameter {name!r}")
            wanted = (int, float) if PARAMETERS[name] is float else PARAMETERS[name]
            if not isinstance(value, wanted):
                raise Refused(400, f"parameter {name!r} has the wrong type")
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        self.state.models[body["model"]] = {**body, "digest": digest}
        return 200, [{"status": "parsing GGUF"}, {"status": "writing manifest"}, {"status": "success"}]

    def _model(self, name: str) -> dict[str, Any]:
        if name not in self.state.models:
            raise Refused(404, f"model {name!r} not found")
        return self.state.models[name]

    def _tags(self) -> tuple[int, list[Any]]:
        entries = [
            {"name": name, "model": name, "digest": model["digest"], "size": self._size(model)}
            for name, model in self.state.models.items()
        ]
        return 200, [{"models": entries}]

    def _ps(self) -> tuple[int, list[Any]]:
        if self.state.loaded not in self.state.models:
            return 200, [{"models": []}]
        model = self.state.models[self.state.loaded]
        size = self._size(model)
        entry = {
            "name": self.state.loaded, "model": self.state.loaded, "digest": model["digest"], "size": size,
            "size_vram": int(size * self.state.gpu_share), "expires_at": "2030-01-01T00:00:00Z",
            "context_length": self.state.context or model.get("parameters", {}).get("num_ctx", 4096),
        }  # fmt: skip
        return 200, [{"models": [entry]}]

    def _size(self, model: dict[str, Any]) -> int:
        return sum(len(self.state.blobs[digest]) for digest in model.get("files", {}).values())

    def _show(self, body: dict[str, Any]) -> tuple[int, list[Any]]:
        model = self._model(body["model"])
        return 200, [{key: model.get(key) for key in ("template", "system", "parameters")}]

    def _copy(self, body: dict[str, Any]) -> tuple[int, list[Any]]:
        self.state.models[body["destination"]] = self._model(body["source"])
        return 200, []

    def _delete(self, body: dict[str, Any]) -> tuple[int, list[Any]]:
        self._model(body["model"])
        del self.state.models[body["model"]]
        return 200, []

    def _chat(self, body: dict[str, Any]) -> tuple[int, list[Any]]:
        if unknown := set(body) - CHAT_FIELDS:
            raise Refused(400, f"unknown field {sorted(unknown)[0]!r}")
        if unknown := set(body.get("options", {})) - set(PARAMETERS):
            raise Refused(400, f"unknown option {sorted(unknown)[0]!r}")
        self._model(body["model"])
        self.state.loaded = body["model"]
        tokens = 12
        answer = {
            "model": body["model"], "message": {"role": "assistant", "content": self.state.reply}, "done": True,
            "done_reason": "stop", "eval_count": tokens, "eval_duration": int(tokens / self.state.tokens_per_s * 1e9),
        }  # fmt: skip
        return 200, [answer]
