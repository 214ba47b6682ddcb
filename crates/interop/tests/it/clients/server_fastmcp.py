# A server by FastMCP: python server_fastmcp.py stdio|sse|streamable-http
import asyncio
import socket
import sys

from fastmcp import Context, FastMCP

server = FastMCP("fastmcp")


@server.tool
def echo(message: str) -> str:
    return f"Echo: {message}"


@server.tool
async def slow(steps: int, context: Context) -> str:
    for step in range(1, steps + 1):
        await context.report_progress(step, steps)
        await asyncio.sleep(0.02)
    return "done"


@server.resource("note://hello")
def hello() -> str:
    return "Grüße, 世界 😀"


@server.prompt
def greet(name: str) -> str:
    return f"Greet {name}"


def http(transport, path):
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}{path}", flush=True)
    app = server.http_app(path=path, transport=transport)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


match sys.argv[1]:
    case "stdio":
        server.run("stdio", show_banner=False)
    case "sse":
        http("sse", "/sse")
    case "streamable-http":
        http("streamable-http", "/mcp")
