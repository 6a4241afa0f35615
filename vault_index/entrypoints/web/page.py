"""The page at `/docs`: the routes and their fields, from the OpenAPI description, without a script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem }
code { font-size: 0.9em } td, th { text-align: left; padding: 0 1.5rem 0 0; vertical-align: top }
h2 { margin: 2rem 0 0 } h2 b { display: inline-block; min-width: 5rem }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd } a { color: #9cf } }
"""


def page_of(description: Mapping[str, Any]) -> str:
    """Return an HTML page of an OpenAPI description."""
    info = description["info"]
    title = f"{escape(info['title'])} {escape(info['version'])}"
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>",
        f"<style>{_STYLE}</style><h1>{title}</h1><p>{escape(info['description'])}",
        "<p>Writes and the journal need the header <code>Authorization: Bearer TOKEN</code>, with "
        "the token of the file <code>token</code> in <code>~/.lessons</code>. "
        "Errors are JSON, <code>error</code> and <code>hint</code>. "
        "For programs: <a href=/openapi.json>openapi.json</a>.",
    ]
    schemas = description.get("components", {}).get("schemas", {})
    for path, methods in description["paths"].items():
        for method, route in methods.items():
            parts.append(f"<h2><b>{method.upper()}</b> <code>{escape(path)}</code></h2>")
            parts.append(f"<p>{_text(route.get('description', ''))}")
            parts += _table("Parameters", _parameters(route))
            body = _schema(route.get("requestBody", {}), schemas)
            parts += _table("Body", _fields(body))
            parts += _table("Answer", _fields(_schema(route["responses"].get("200", {}), schemas)))
    return "\n".join(parts)


def _schema(part: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a body's JSON."""
    schema: Mapping[str, Any]
    schema = part.get("content", {}).get("application/json", {}).get("schema", {})
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    return schemas.get(name, {}) if name else schema


def _parameters(route: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for parameter in route.get("parameters", ()):
        needed = parameter.get("required", False)
        yield parameter["name"], _kind(parameter["schema"]), _default(parameter["schema"], needed)


def _fields(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name, field in schema.get("properties", {}).items():
        yield name, _kind(field), _default(field, name in schema.get("required", ()))


def _table(title: str, rows: Iterator[tuple[str, str, str]]) -> list[str]:
    lines = [
        f"<tr><td><code>{escape(name)}</code><td>{escape(kind)}<td>{escape(default)}"
        for name, kind, default in rows
    ]
    return [f"<table><tr><th>{title}<th><th>", *lines, "</table>"] if lines else []


def _kind(schema: Mapping[str, Any]) -> str:
    """Return the type of a value in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    choices = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if choices:
        return " or ".join(map(_kind, choices))
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if "additionalProperties" in schema:
        return f"object of {_kind(schema['additionalProperties'])}"
    return str(schema.get("type", "any"))


def _default(schema: Mapping[str, Any], needed: bool) -> str:
    if needed:
        return "required"
    default = schema.get("default")
    return "" if default in (None, "") else f"default {default}"


def _text(text: str) -> str:
    return escape(" ".join(text.split()))
