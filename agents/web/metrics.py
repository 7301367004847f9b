"""Counts requests: how many, how they ended, how long they took."""

from __future__ import annotations

import time

from prometheus_client import CollectorRegistry, Counter, Histogram, PlatformCollector, ProcessCollector

from agents.web.guard import App, Receive, Received, Scope, Send

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})


class Metrics:
    """Counters of one application; another application in the same process has its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.requests = Counter(
            "torchtpu_http_requests", "Requests by kind of page.", ["method", "route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "torchtpu_http_seconds", "Seconds to the head of an answer.", ["route"], registry=self.registry
        )


class Measured:
    """ASGI middleware that counts.

    Args:
        app: What is measured.
        metrics: Where to.
    """

    def __init__(self, app: App, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count its answer by the route that took it, never by a path as it came."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()

        async def sending(message: Received) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "other")
                method = scope["method"] if scope["method"] in _METHODS else "other"
                self._metrics.requests.labels(method, route, str(message["status"])).inc()
                self._metrics.seconds.labels(route).observe(time.monotonic() - began)
            await send(message)

        await self._app(scope, receive, sending)
