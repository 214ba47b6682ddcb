# A server by the official Python SDK: python server_mcp.py stdio|sse|streamable-http
import asyncio
import socket
import sys

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("python")


@server.tool()
def echo(message: str) -> str:
    return f"Echo: {message}"


@server.tool()
async def slow(steps: int, context: Context) -> str:
    for step in range(1, steps + 1):
        await context.report_progress(step, steps)
        await asyncio.sleep(0.02)
    return "done"


@server.resource("note://hello")
def hello() -> str:
    return "Grüße, 世界 😀"


@server.prompt()
def greet(name: str) -> str:
    return f"Greet {name}"


def http(app, path):
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}{path}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


match sys.argv[1]:
    case "stdio":
        server.run("stdio")
    case "sse":
        http(server.sse_app(), "/sse")
    case "streamable-http":
        http(server.streamable_http_app(), "/mcp")
