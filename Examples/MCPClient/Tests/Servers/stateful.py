"""A server with sessions, event streams and an event store."""

import os
import uuid

from mcp.server.mcpserver import MCPServer
from mcp.server.streamable_http import EventMessage, EventStore

from tools import add_tools, listen, run


class Events(EventStore):
    """The events of all streams, in memory."""

    def __init__(self) -> None:
        self.prefix = uuid.uuid4().hex
        self.events = []

    async def store_event(self, stream_id, message):
        self.events.append((stream_id, message))
        return f"{self.prefix}-{len(self.events)}"

    async def replay_events_after(self, last_event_id, send_callback):
        prefix, _, number = last_event_id.rpartition("-")
        if prefix != self.prefix:
            return None
        index = int(number)
        stream = self.events[index - 1][0]
        while index < len(self.events):
            event, message = self.events[index]
            index += 1
            if event == stream and message is not None:
                await send_callback(EventMessage(message, f"{self.prefix}-{index}"))
        return stream


server = MCPServer("stateful", version="1.2", log_level="CRITICAL")
add_tools(server)
listener, _ = listen()
retry = int(os.environ.get("MCP_RETRY", "20"))
run(server.streamable_http_app(event_store=Events(), retry_interval=retry), listener)
