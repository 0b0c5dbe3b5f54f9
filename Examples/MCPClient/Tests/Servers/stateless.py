"""A server without sessions, whose responses are JSON."""

from mcp.server.mcpserver import MCPServer

from tools import add_tools, listen, run

server = MCPServer("stateless", version="1.2", log_level="CRITICAL")
add_tools(server)
listener, _ = listen()
run(server.streamable_http_app(json_response=True, stateless_http=True), listener)
