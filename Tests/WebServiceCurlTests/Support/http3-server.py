"""An HTTP/3 server for tests, and HTTP/2 on the TCP port with the same number: hypercorn.

usage: http3-server.py CERTIFICATE KEY PORT PROTOCOLS

PROTOCOLS is a list of udp and tcp. With port 0, the system selects the port. The server prints the
port, and ends when its standard input ends.

/bytes/N responds with N bytes, /echo with the request body, /silent with a head only, /fields/N with
N header fields, and every other path with the version of HTTP and the client's port.
"""
import asyncio
import socket
import sys

from hypercorn.asyncio.run import worker_serve
from hypercorn.config import Config, Sockets
from hypercorn.utils import wrap_app


async def respond(scope, receive, send):
    if scope["type"] != "http":
        return
    body = b""
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    path = scope["path"]
    fields = [(b"x-field-%d" % number, b"x" * 100) for number in range(argument(path, "/fields/"))]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    if path == "/silent":
        await asyncio.Event().wait()
    if path.startswith("/bytes/"):
        count = argument(path, "/bytes/")
        body = (bytes(range(251)) * (count // 251 + 1))[:count]
    elif path != "/echo":
        body = f"{scope['http_version']} {scope['client'][1]}".encode()
    await send({"type": "http.response.body", "body": body, "more_body": False})


def argument(path, prefix):
    return int(path[len(prefix) :]) if path.startswith(prefix) else 0


def bind(kind, port):
    opened = socket.socket(socket.AF_INET, kind)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    opened.bind(("127.0.0.1", port))
    if kind == socket.SOCK_STREAM:
        opened.listen(100)
    opened.setblocking(False)
    return opened


async def main(certificate, key, port, protocols):
    config = Config()
    config.certfile, config.keyfile, config.loglevel = certificate, key, "CRITICAL"
    tcp = bind(socket.SOCK_STREAM, int(port))
    number = tcp.getsockname()[1]
    udp = bind(socket.SOCK_DGRAM, number) if "udp" in protocols else None
    if "tcp" not in protocols:
        tcp.close()
    sockets = Sockets([tcp] if "tcp" in protocols else [], [], [udp] if udp else [])
    print(number, flush=True)
    end = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await worker_serve(wrap_app(respond, 64 << 20, "asgi"), config, sockets=sockets, shutdown_trigger=lambda: end)


asyncio.run(main(*sys.argv[1:]))
