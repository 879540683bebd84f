"""Calls tools with the official client of the Model Context Protocol. Reads one JSON object from standard input:

{"url": …, "headers": {…}} or {"command": …, "args": […], "env": {…}}, "mode": "auto" or "legacy",
"calls": [{"tool": …, "arguments": {…}, "follow": true}, …]

A call with `follow` is repeated with the returned cursor until no cursor is returned. Prints the results as JSON.
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError


async def call_tool(client, call):
    """Returns the results of a call: one, or all pages."""
    results, arguments = [], dict(call["arguments"])
    while True:
        try:
            result = await client.call_tool(call["tool"], arguments)
        except MCPError as error:
            return [*results, {"error": {"code": error.error.code, "message": error.error.message}}]
        meta = result.meta or {}
        text = "".join(block.text for block in result.content)
        results.append({"isError": bool(result.is_error), "text": text, "meta": meta})
        if not call.get("follow") or "verbatim/next_cursor" not in meta:
            return results
        arguments["cursor"] = meta["verbatim/next_cursor"]


async def main():
    request = json.load(sys.stdin)
    if "url" in request:
        http = httpx2.AsyncClient(headers=request.get("headers", {}), timeout=60)
        server = streamable_http_client(request["url"], http_client=http)
    else:
        server = StdioServerParameters(command=request["command"], args=request["args"], env=request["env"])
    async with Client(server, mode=request["mode"], read_timeout_seconds=60) as client:
        tools = await client.list_tools()
        output = {
            "version": client.protocol_version,
            "server": client.server_info.name,
            "instructions": client.instructions,
            "tools": [tool.name for tool in tools.tools],
            "results": [await call_tool(client, call) for call in request["calls"]],
        }
    print(json.dumps(output))


asyncio.run(main())
