"""Validates an OpenAPI document: the format, the conventions of the public one, and every example against its schema.

usage: validate.py DOCUMENT
"""

import json
import sys

from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

METHODS = ("get", "head", "post", "put", "patch", "delete", "options", "trace")
REQUIRED = {
    "getTranscript": ("get", "/api/transcript"),
    "createApiKey": ("post", "/api/keys"),
    "getKeyStatus": ("get", "/api/keys/me"),
    "registerAccount": ("post", "/api/v1/register"),
    "openVerificationLink": ("get", "/api/v1/verify"),
    "confirmVerification": ("post", "/api/v1/verify"),
    "getAccount": ("get", "/api/v1/me"),
    "rotateKey": ("post", "/api/v1/rotate-key"),
    "getVideoTranscript": ("get", "/api/v1/transcript"),
}


def operations(document):
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method]


def schemas_with_examples(node, path=""):
    """Yields every example with its schema, as (path, schema, example)."""
    if isinstance(node, dict):
        for name, example in (node.get("examples") or {}).items() if "schema" in node else ():
            yield f"{path}/examples/{name}", node["schema"], example["value"]
        # In a schema, examples are a list of values.
        if isinstance(node.get("examples"), list):
            for at, value in enumerate(node["examples"]):
                yield f"{path}/examples/{at}", node, value
        for key, value in node.items():
            # Examples are data and contain no schemas.
            if key != "examples":
                yield from schemas_with_examples(value, f"{path}/{key}")
    elif isinstance(node, list):
        for at, value in enumerate(node):
            yield from schemas_with_examples(value, f"{path}/{at}")


def format_errors(document):
    if document.get("openapi", "").rsplit(".", 1)[0] != "3.1":
        yield f"not an OpenAPI 3.1 document: {document.get('openapi')}"
    for error in OpenAPIV31SpecValidator(document).iter_errors():
        yield f"{'/'.join(map(str, error.absolute_path))}: {error.message}"
    for name, schema in document["components"]["schemas"].items():
        try:
            Draft202012Validator.check_schema(schema)
        except Exception as error:
            yield f"schema {name}: {error}"


def convention_errors(document):
    info = document["info"]
    for field in ("title", "version", "description", "license"):
        if not info.get(field):
            yield f"info.{field} is missing"
    if info.get("version") != "2.0.0":
        yield f"info.version is {info.get('version')}, must be 2.0.0"
    if not document.get("servers"):
        yield "servers are missing"
    found = {operation.get("operationId"): (method, path) for path, method, operation in operations(document)}
    for name, expected in REQUIRED.items():
        if found.get(name) != expected:
            yield f"{name} must be {expected}, is {found.get(name)}"
    tags = {tag["name"] for tag in document.get("tags", [])}
    for path, method, operation in operations(document):
        where = f"{method} {path}"
        for field in ("operationId", "summary", "tags", "security", "responses"):
            if field not in operation:
                yield f"{where}: {field} is missing"
        for tag in set(operation.get("tags", [])) - tags:
            yield f"{where}: the tag {tag} is not described"
        for parameter in operation.get("parameters", []):
            if not parameter.get("description") or not parameter.get("examples"):
                yield f"{where}: the parameter {parameter['name']} needs a description and examples"
        for status, response in operation["responses"].items():
            if not response.get("description"):
                yield f"{where} {status}: the description is missing"
            for kind, media in response.get("content", {}).items():
                if "schema" not in media or not media.get("examples"):
                    yield f"{where} {status} {kind}: it needs a schema and examples"
            # Oversized headers are rejected at connection level, without a body.
            problem = int(status) >= 400 and method != "head" and status != "431"
            if problem and not response.get("content"):
                yield f"{where} {status}: its body is not described"
    if sum(1 for _ in schemas_with_examples(document)) < 30:
        yield "fewer than 30 examples"
    used = json.dumps(document)
    for name in document["components"]["schemas"]:
        if f'"#/components/schemas/{name}"' not in used:
            yield f"the schema {name} is not used"
    for name, schema in document["components"]["schemas"].items():
        for field, property_schema in schema.get("properties", {}).items():
            if "description" not in property_schema and "$ref" not in property_schema:
                yield f"the field {name}.{field} has no description"


def example_errors(document):
    components = {"components": document["components"]}
    for path, schema, value in schemas_with_examples(document):
        validator = Draft202012Validator(
            {**components, **schema}, format_checker=Draft202012Validator.FORMAT_CHECKER
        )
        for error in validator.iter_errors(value):
            yield f"{path}: {error.message}"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    errors = [*format_errors(document), *example_errors(document)]
    is_admin = document["paths"] and all(path.startswith("/admin/") for path in document["paths"])
    if not is_admin:
        errors += convention_errors(document)
    for line in errors:
        print(line, file=sys.stderr)
    if errors:
        sys.exit(f"{len(errors)} errors in the document")
    count = sum(1 for _ in schemas_with_examples(document))
    print(f"valid: {len(list(operations(document)))} operations, {count} examples")


if __name__ == "__main__":
    main()
