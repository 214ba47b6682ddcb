# A client by the official Python SDK: python client.py TRANSPORT URL PLAN
# It executes the plan, and prints the results.
import asyncio
import json
import sys

from mcp import Client
from mcp.client.sse import sse_client

transport, url, plan = sys.argv[1:]
plan = json.loads(plan)


def plain(models):
    return [model.model_dump(mode="json", by_alias=True, exclude_none=True) for model in models]


async def main():
    progress = []

    async def on_progress(done, total, message):
        progress.append([done, total])

    async with Client(url if transport == "streamable" else sse_client(url), cache=None) as client:
        tools = sorted(tool.name for tool in (await client.list_tools()).tools)
        echoed = await client.call_tool(plan["echo"]["name"], plan["echo"]["arguments"])
        done = await client.call_tool(plan["slow"]["name"], plan["slow"]["arguments"], progress_callback=on_progress)
        # Notifications are handled concurrently, so the last one may be handled after the response.
        for _ in range(500):
            if len(progress) >= plan["steps"]:
                break
            await asyncio.sleep(0.01)
        read = await client.read_resource(plan["resource"])
        prompt = await client.get_prompt(plan["prompt"]["name"], plan["prompt"]["arguments"])
        print(json.dumps({
            "server": client.server_info.name if client.server_info else None,
            "protocol": client.protocol_version,
            "tools": tools,
            "echoed": plain(echoed.content),
            "progress": progress,
            "done": plain(done.content),
            "read": plain(read.contents),
            "messages": plain(prompt.messages),
        }))


asyncio.run(main())
