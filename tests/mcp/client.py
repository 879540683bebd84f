"""Calls tools with the official client of the Model Context Protocol, as an order on standard input says:

{"url": …, "headers": {…}} or {"command": …, "args": […], "env": {…}}, "mode": "auto" or "legacy",
"calls": [{"tool": …, "arguments": {…}, "follow": true}, …]

A call that is followed is repeated with the cursor that it gave, until it gives none. What came is printed as JSON.
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError


async def called(client, call):
    """The results of a call: one, or all of its pages."""
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
    order = json.load(sys.stdin)
    if "url" in order:
        http = httpx2.AsyncClient(headers=order.get("headers", {}), timeout=60)
        server = streamable_http_client(order["url"], http_client=http)
    else:
        server = StdioServerParameters(command=order["command"], args=order["args"], env=order["env"])
    async with Client(server, mode=order["mode"], read_timeout_seconds=60) as client:
        tools = await client.list_tools()
        told = {
            "version": client.protocol_version,
            "server": client.server_info.name,
            "instructions": client.instructions,
            "tools": [tool.name for tool in tools.tools],
            "results": [await called(client, call) for call in order["calls"]],
        }
    print(json.dumps(told))


asyncio.run(main())
