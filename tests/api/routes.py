"""Every route of the API with every method that it has, read from the resolver."""

from dataclasses import dataclass
from typing import Any

from django.test import Client
from django.urls import URLPattern, reverse

from config.api import endpoints

DETAIL = {"detail", "progress", "agreement", "cancel"}


@dataclass(frozen=True)
class Route:
    name: str
    method: str
    action: str
    parameters: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.method} {self.name}"

    @property
    def is_of_a_study(self) -> bool:
        return "study" in self.parameters

    @property
    def base(self) -> str:
        return "-".join(self.name.split("-")[:2])

    def address(self, samples: dict[str, Any]) -> str:
        return reverse(
            self.name, kwargs={name: samples[self.base if name == "pk" else name] for name in self.parameters}
        )

    def ask(self, client: Client, samples: dict[str, Any], body: Any = None) -> Any:
        if self.method == "post":
            return client.post(self.address(samples), body or {}, content_type="application/json")
        return client.get(self.address(samples))


def _routes() -> list[Route]:
    found = []
    for pattern in endpoints:
        assert isinstance(pattern, URLPattern)
        callback: Any = pattern.callback
        actions = getattr(callback, "actions", None) or {"get": "get"}
        for method, action in actions.items():
            if method != "head":
                found.append(Route(pattern.name or "", method, action, tuple(pattern.pattern.converters)))
    return found


ROUTES = _routes()
OF_A_STUDY = [route for route in ROUTES if route.is_of_a_study]
LISTS = [route for route in ROUTES if route.action == "list"]
