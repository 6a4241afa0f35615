"""The answer to a client that cannot be served: a status, and JSON with `error` and `hint`.

A browser that opens the address of a page gets the same as a page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from vault_index import errors
from vault_index.entrypoints import bug
from vault_index.entrypoints.web.fields import answer_form, no_field

# the first status with a kind that an error is of
STATUSES: dict[int, tuple[type[errors.VaultError], ...]] = {
    409: (errors.ChangedError, errors.LinkError),
    507: (errors.WriteError,),
    422: (errors.LessonError,),
    503: (errors.BusyError, errors.SettingsError, errors.NoVaultError, errors.IndexStateError,
          errors.ForeignIndexError, errors.EmbedderError, errors.UnreadableError),
}  # fmt: skip
SHOWN_PROBLEMS = 5
FIELDS_HINT = "see `/openapi.json` for the fields"
NOTED = "noted by the application"
REFUSED = answer_form("RefusedRequest", error=(str, ...), hint=(str, ...), detail=(list[Any], []))


class Refusal(Exception):
    """A refusal of a request: its status, why, what to do, and the field of a form that it is about."""

    def __init__(self, status: int, error: str, hint: str = "", field: str = "") -> None:
        super().__init__(error)
        self.status = status
        self.error = error
        self.hint = hint
        self.field = field


NOT_JSON = Refusal(400, "the body is not JSON", "send one JSON object in UTF-8")


def from_error(error: errors.VaultError, status: int, shown: Callable[[str], str]) -> Refusal:
    """Return the refusal for an error; `status` where its kind does not say which."""
    code = next((code for code, kinds in STATUSES.items() if isinstance(error, kinds)), status)
    return Refusal(code, shown(error.message), shown(error.hint))


def add_handlers(
    app: FastAPI, note: Callable[[str], None], as_page: Callable[[Refusal], Response]
) -> None:
    """Have an application answer errors of any kind as refusals; bugs are noted, for its user."""

    def refused(request: Request, refusal: Any, detail: Sequence[object] = ()) -> Response:
        is_read = "text/html" in request.headers.get("accept", "")
        if is_read and not request.url.path.startswith(("/api/", "/page/")):
            return as_page(refusal)  # a browser shows it in its window
        body = {"error": refusal.error, "hint": refusal.hint}
        if field := getattr(refusal, "field", ""):
            body["field"] = field
        return JSONResponse(body | ({"detail": detail} if detail else {}), refusal.status)

    def invalid(request: Request, error: Any) -> Response:
        problems = error.errors()
        if any(problem["type"] == "json_invalid" for problem in problems):
            return refused(request, NOT_JSON)
        status = 413 if any(problem["type"] == "too_long" for problem in problems) else 422
        own_form = [{name: each[name] for name in ("loc", "msg", "type")} for each in problems]
        return refused(request, Refusal(status, said(problems, 1), FIELDS_HINT), own_form)

    def failed(request: Request, error: Any) -> Response:
        if error.status_code == 400:  # its brackets go too deep, or a number is too long
            return refused(request, NOT_JSON)
        hint = "see `/openapi.json` for the routes" if error.status_code in (404, 405) else ""
        return refused(request, Refusal(error.status_code, str(error.detail).lower(), hint))

    def broken(request: Request, error: Exception) -> Response:
        note(f"error: {request.method} {request.url.path}: {bug.line(error)}")
        error.add_note(NOTED)
        about = f"a bug of the server ({type(error).__name__})"
        return refused(request, Refusal(500, about, "report it: the server says where its log is"))

    app.add_exception_handler(Refusal, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, failed)
    app.add_exception_handler(Exception, broken)


def refuse_unknown(request: Request) -> None:
    """Raise Refusal for a parameter of the address that its route does not take."""
    names = _parameters(request.scope["route"].dependant)
    for name in request.query_params:
        if name not in names:
            raise Refusal(422, no_field(name, names), FIELDS_HINT)


def _parameters(dependant: Dependant) -> list[str]:
    names: list[str] = []
    for each in dependant.query_params:  # one that is a model stands for its fields
        names += getattr(each.field_info.annotation, "model_fields", [each.alias])
    return names + [name for each in dependant.dependencies for name in _parameters(each)]


def said(problems: Sequence[Mapping[str, Any]], skip: int = 0) -> str:
    """Return the faults of values in a line; `skip` levels of their places are not named."""
    return "; ".join(
        f"{'.'.join(map(str, problem['loc'][skip:])) or 'the body'}: {_sentence(problem)}"
        for problem in problems[:SHOWN_PROBLEMS]
    )


def _sentence(problem: Mapping[str, Any]) -> str:
    if problem["type"] in ("model_attributes_type", "model_type"):
        return "this is no JSON object"
    unit = " characters" if isinstance(problem["input"], str) else " items"
    text = str(problem["msg"]).replace(" items after validation", unit)
    text = text.removeprefix("Value error, ")
    return text if text[:2].isupper() else text[:1].lower() + text[1:]
