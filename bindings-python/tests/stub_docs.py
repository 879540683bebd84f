"""Docstrings of the native module in its stub, which editors show."""

from __future__ import annotations

import ast
import inspect
import pathlib
import re

import verbatim_transcripts as vt
from verbatim_transcripts import _native

CLASSES = ["Segment", "Segments", "Transcript", "SupplyRequest"]
INDENT = "    "


def documented(tree: ast.Module) -> list[tuple[ast.ClassDef | ast.FunctionDef, str]]:
    """The classes and methods of the stub that have a docstring in the module, and that docstring."""
    found: list[tuple[ast.ClassDef | ast.FunctionDef, str]] = []
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or node.name not in CLASSES:
            continue
        kind = getattr(_native, node.name)
        found.append((node, inspect.cleandoc(kind.__doc__)))
        for member in node.body:
            if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                doc = inspect.getattr_static(kind, member.name).__doc__ or getattr(kind, member.name).__doc__
                assert doc, f"{node.name}.{member.name} has no docstring"
                found.append((member, inspect.cleandoc(doc)))
    return found


def is_current(text: str) -> bool:
    """Whether the stub has the docstrings of the module."""
    return all(ast.get_docstring(node) == doc for node, doc in documented(ast.parse(text)))


def updated(text: str) -> str:
    """The stub with the docstrings of the module."""
    lines = text.splitlines()
    for node, doc in sorted(documented(ast.parse(text)), key=lambda item: -item[0].lineno):
        first = node.body[0]
        has_doc = ast.get_docstring(node) is not None
        indent = INDENT * (2 if isinstance(node, ast.FunctionDef) else 1)
        raw = "r" if "\\" in doc else ""
        quoted = f'{raw}"""{doc}"""' if "\n" not in doc else f'{raw}"""{doc}\n"""'
        block = [(indent + line).rstrip() for line in quoted.splitlines()]
        if has_doc:
            assert first.end_lineno
            lines[first.lineno - 1 : first.end_lineno] = block
        elif isinstance(node, ast.FunctionDef):
            line = first.lineno - 1
            lines[line : line + 1] = [re.sub(r"\s*\.\.\.$", "", lines[line]), *block]
        else:
            decorators = getattr(first, "decorator_list", [])
            line = min([first.lineno, *(each.lineno for each in decorators)]) - 1
            lines[line:line] = block
    return "\n".join(lines) + "\n"


def source() -> pathlib.Path:
    """The stub in the repository."""
    return pathlib.Path(__file__).parents[1] / "python" / "verbatim_transcripts" / "_native.pyi"


if __name__ == "__main__":
    source().write_text(updated(source().read_text()))
    print(f"updated {source().name} of version {vt.__version__}")
