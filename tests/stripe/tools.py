"""Checks with Stripe's Python library and OpenAPI description.

    tools.py sign SECRET < body            prints the header Stripe-Signature
    tools.py verify SECRET HEADER < body   prints the event's id, or fails
    tools.py shapes SPEC < exchanges       prints each difference from the description, one a line
"""

import json
import re
import sys

import jsonschema
import stripe


def sign(secret):
    body = sys.stdin.buffer.read().decode()
    print(stripe.WebhookSignature.generate_signature_header(body, secret))


def verify(secret, header):
    event = stripe.Webhook.construct_event(sys.stdin.buffer.read(), header, secret)
    print(event["id"])


def strict(schema):
    """Returns the schema with `nullable` as in JSON Schema, nothing required, and no unknown properties.

    The fake Stripe omits unused fields; the fields it sends must have Stripe's names and types.
    """
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    converted = {key: strict(value) for key, value in schema.items() if key not in ("required", "nullable")}
    if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema:
        converted["additionalProperties"] = False
    if schema.get("nullable"):
        return {"anyOf": [converted, {"type": "null"}]}
    return converted


def operation(spec, method, path):
    for template, methods in spec["paths"].items():
        pattern = re.sub(r"\{[^}]*\}", "[^/]+", template)
        if re.fullmatch(pattern, path) and method in methods:
            return methods[method]
    return None


def shapes(spec_file):
    with open(spec_file, encoding="utf-8") as file:
        spec = json.load(file)
    components = {"schemas": strict(spec["components"]["schemas"])}
    for exchange in json.load(sys.stdin):
        name = f"{exchange['method']} {exchange['path']}"
        found = operation(spec, exchange["method"].lower(), exchange["path"])
        if found is None:
            print(f"{name}: unknown operation")
            continue
        schema = strict(found["responses"]["200"]["content"]["application/json"]["schema"])
        validator = jsonschema.Draft4Validator({**schema, "components": components})
        for error in validator.iter_errors(exchange["answer"]):
            # For a value with several allowed forms, report the error of the closest one.
            error = jsonschema.exceptions.best_match([error])
            path = "/".join(str(part) for part in error.absolute_path)
            print(f"{name}: {path}: {error.message[:300]}")


if __name__ == "__main__":
    {"sign": sign, "verify": verify, "shapes": shapes}[sys.argv[1]](*sys.argv[2:])
