"""A tus server on loopback: tuspyserver, which stores the files in a folder.

    python3 tus-server.py <folder>

Prints the port, and ends when its standard input is closed.
"""
import os
import socket
import sys
import threading

import fastapi
import tuspyserver
import uvicorn

app = fastapi.FastAPI()
app.include_router(tuspyserver.create_tus_router(files_dir=sys.argv[1], strict_offset_validation=True))
listener = socket.create_server(("127.0.0.1", 0))


def end_with_input():
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=end_with_input, daemon=True).start()
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
