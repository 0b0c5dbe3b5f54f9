"""The tools of the test servers, and the start of a server.

Each call that reaches a tool, each effect and each cancellation is a line of the file that the
variable MCP_LOG names, so that a test can count them. A line is one write, so a server that is
killed leaves whole lines.
"""

import os
import signal
import socket
import sys
import threading

import anyio
import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import ToolAnnotations
from pydantic import BaseModel

# One white pixel.
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8ffff3f0005fe02fe0def46b80000000049454e44ae426082"
)
READS = ToolAnnotations(read_only_hint=True)
IDEMPOTENT = ToolAnnotations(read_only_hint=False, idempotent_hint=True)
EFFECT = ToolAnnotations(read_only_hint=False, idempotent_hint=False)


def log(*words: object) -> None:
    """Appends a line to the log."""
    file = os.open(os.environ["MCP_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (" ".join(str(word) for word in words) + "\n").encode())
    os.close(file)


class Point(BaseModel):
    x: int
    y: int


def add_tools(server: MCPServer) -> None:
    @server.tool(annotations=READS)
    def echo(text: str) -> str:
        """Returns a text."""
        return text

    @server.tool(annotations=READS)
    def add(a: int, b: int) -> int:
        """Adds two integers."""
        return a + b

    @server.tool(annotations=READS)
    def mirror(point: Point) -> Point:
        """Mirrors a point at the origin."""
        return Point(x=-point.x, y=-point.y)

    @server.tool(annotations=READS)
    def picture() -> Image:
        """Returns an image of one white pixel."""
        return Image(data=PNG, format="png")

    @server.tool(annotations=READS)
    def fail(reason: str) -> str:
        """Fails."""
        raise ToolError(reason)

    async def effect(tool: str, id: str, milliseconds: int) -> str:
        log("call", tool, id)
        try:
            await anyio.sleep(milliseconds / 1000)
        except anyio.get_cancelled_exc_class():
            log("cancel", tool, id)
            raise
        log("effect", tool, id)
        return f"{tool} {id}"

    @server.tool(annotations=EFFECT)
    async def count(id: str, milliseconds: int = 0) -> str:
        """Has an effect, after a delay."""
        return await effect("count", id, milliseconds)

    @server.tool(annotations=IDEMPOTENT)
    async def put(id: str, milliseconds: int = 0) -> str:
        """Has an effect that may be repeated, after a delay."""
        return await effect("put", id, milliseconds)

    @server.tool(annotations=EFFECT)
    async def slow(id: str, steps: int, context: Context, milliseconds: int = 20) -> str:
        """Has an effect after several steps, and reports its progress."""
        log("call", "slow", id)
        try:
            for step in range(steps):
                await context.report_progress(step + 1, steps, f"step {step + 1}")
                await anyio.sleep(milliseconds / 1000)
        except anyio.get_cancelled_exc_class():
            log("cancel", "slow", id)
            raise
        log("effect", "slow", id)
        return f"slow {id}"

    @server.tool(annotations=EFFECT)
    async def crash(id: str, after: bool) -> str:
        """Ends the server process before or after the effect."""
        log("call", "crash", id)
        if after:
            log("effect", "crash", id)
        os.kill(os.getpid(), signal.SIGKILL)
        return ""

    @server.tool(annotations=EFFECT)
    async def poll(id: str, context: Context) -> str:
        """Closes the connection before the result, so that the client has to fetch it."""
        log("call", "poll", id)
        await context.close_sse_stream()
        await anyio.sleep(0.05)
        log("effect", "poll", id)
        return f"poll {id}"

    @server.tool(annotations=READS)
    async def ask(context: Context) -> str:
        """Requests an input from the client."""
        try:
            await context.session.elicit_form("Name?", {"type": "object", "properties": {}}, context.request_id)
        except MCPError as error:
            return f"error {error.code}"
        return "accepted"

    @server.tool(annotations=READS)
    async def ping(context: Context) -> str:
        """Pings the client on the stream that it has opened with GET."""
        await context.session.send_ping()
        return "pong"

    @server.tool(annotations=EFFECT)
    async def grow(name: str, context: Context) -> str:
        """Adds a tool that returns its name."""
        server.add_tool(lambda: name, name, description="Returns its name.", annotations=READS)
        await context.session.send_tool_list_changed()
        return name


def listen() -> tuple[socket.socket, int]:
    """Returns a socket on this machine, and its port."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0))
    return listener, listener.getsockname()[1]


def run(app, listener: socket.socket) -> None:
    """Serves until the standard input ends, which is when the test process ends."""

    def watch() -> None:
        sys.stdin.buffer.read()
        os._exit(0)

    async def serve() -> None:
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="on", timeout_keep_alive=60))
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, [listener])
            while not server.started:
                await anyio.sleep(0.005)
            print(f"listening on {listener.getsockname()[1]}", flush=True)

    threading.Thread(target=watch, daemon=True).start()
    anyio.run(serve)
