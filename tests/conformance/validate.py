"""Validates an OpenAPI document: its form, its habits, and every example against its schema.

usage: validate.py DOCUMENT
"""

import json
import sys

from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

METHODS = ("get", "head", "post", "put", "patch", "delete", "options", "trace")
PROMISED = {
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


def schemas_with_examples(node, place=""):
    """Every place with a schema and examples of it, as (place, schema, name, example)."""
    if isinstance(node, dict):
        for name, example in (node.get("examples") or {}).items() if "schema" in node else ():
            yield f"{place}/examples/{name}", node["schema"], example["value"]
        # Inside a schema, examples are a list of values.
        if isinstance(node.get("examples"), list):
            for at, value in enumerate(node["examples"]):
                yield f"{place}/examples/{at}", node, value
        for key, value in node.items():
            # An example is data: nothing in it is a schema.
            if key != "examples":
                yield from schemas_with_examples(value, f"{place}/{key}")
    elif isinstance(node, list):
        for at, value in enumerate(node):
            yield from schemas_with_examples(value, f"{place}/{at}")


def form(document):
    if document.get("openapi", "").rsplit(".", 1)[0] != "3.1":
        yield f"it is no document of OpenAPI 3.1: {document.get('openapi')}"
    for error in OpenAPIV31SpecValidator(document).iter_errors():
        yield f"{'/'.join(map(str, error.absolute_path))}: {error.message}"
    for name, schema in document["components"]["schemas"].items():
        try:
            Draft202012Validator.check_schema(schema)
        except Exception as error:
            yield f"schema {name}: {error}"


def habits(document):
    info = document["info"]
    for field in ("title", "version", "description", "license"):
        if not info.get(field):
            yield f"info.{field} is missing"
    if info.get("version") != "2.0.0":
        yield f"info.version is {info.get('version')}, and Surface A declares 2.0.0"
    if not document.get("servers"):
        yield "servers are missing"
    found = {operation.get("operationId"): (method, path) for path, method, operation in operations(document)}
    for name, where in PROMISED.items():
        if found.get(name) != where:
            yield f"{name} must be {where}, and is {found.get(name)}"
    tags = {tag["name"] for tag in document.get("tags", [])}
    for path, method, operation in operations(document):
        place = f"{method} {path}"
        for field in ("operationId", "summary", "tags", "security", "responses"):
            if field not in operation:
                yield f"{place}: {field} is missing"
        for tag in set(operation.get("tags", [])) - tags:
            yield f"{place}: the tag {tag} is not described"
        for parameter in operation.get("parameters", []):
            if not parameter.get("description") or not parameter.get("examples"):
                yield f"{place}: the parameter {parameter['name']} needs a description and examples"
        for status, response in operation["responses"].items():
            if not response.get("description"):
                yield f"{place} {status}: the description is missing"
            for kind, media in response.get("content", {}).items():
                if "schema" not in media or not media.get("examples"):
                    yield f"{place} {status} {kind}: it needs a schema and examples"
            # The connection itself refuses a large head, before there is an answer with a body.
            problem = int(status) >= 400 and method != "head" and status != "431"
            if problem and not response.get("content"):
                yield f"{place} {status}: its body is not described"
    used = json.dumps(document)
    for name in document["components"]["schemas"]:
        if f'"#/components/schemas/{name}"' not in used:
            yield f"the schema {name} is not used"
    for name, schema in document["components"]["schemas"].items():
        for field, what in schema.get("properties", {}).items():
            if "description" not in what and "$ref" not in what:
                yield f"the field {name}.{field} has no description"


def examples(document):
    count = 0
    components = {"components": document["components"]}
    for place, schema, value in schemas_with_examples(document):
        count += 1
        validator = Draft202012Validator(
            {**components, **schema}, format_checker=Draft202012Validator.FORMAT_CHECKER
        )
        for error in validator.iter_errors(value):
            yield f"{place}: {error.message}"
    if count < 30:
        yield f"only {count} examples were found"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    wrong = [*form(document), *habits(document), *examples(document)]
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        sys.exit(f"{len(wrong)} to mend in the document")
    count = sum(1 for _ in schemas_with_examples(document))
    print(f"valid: {len(list(operations(document)))} operations, {count} examples")


if __name__ == "__main__":
    main()
