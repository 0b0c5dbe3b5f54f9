"""A TCP proxy that cuts connections, or kills the server, at a given byte.

Commands on the standard input, each with one line of response:

    target PORT           the port of the server; connections are accepted
    down                  the server has ended; connections are refused
    arm WHERE COUNT PID   where to act: after COUNT bytes of responses (response), or with the next
                          bytes of a request, before (swallow) or after (request) it has passed them
                          on; PID is the process to kill, or 0 to reset all connections
    disarm                the response is 'fired' if the proxy has acted, or 'idle'
"""

import asyncio
import os
import signal
import socket
import struct
import sys


class Proxy:
    def __init__(self) -> None:
        self.port = 0
        # While connections are refused, this socket keeps the port from other processes.
        self.place = socket.socket()
        self.place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.place.bind(("127.0.0.1", 0))
        self.own_port = self.place.getsockname()[1]
        self.listener = None
        self.where, self.count, self.process = "", 0, 0
        self.writers, self.tasks = set(), set()

    def fire(self) -> None:
        self.where = "fired"
        if self.process:
            self.close()
            try:
                os.kill(self.process, signal.SIGKILL)
            except ProcessLookupError:
                pass  # the server has ended itself
            return
        for writer in self.writers:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async def pass_on(self, reader, writer, is_request) -> None:
        try:
            while data := await reader.read(65536):
                if is_request and self.where == "swallow":
                    self.fire()
                    return
                if not is_request and self.where == "response":
                    if len(data) > self.count:
                        writer.write(data[: self.count])
                        await writer.drain()
                        self.fire()
                        data = data[self.count :] if self.process else b""
                    else:
                        self.count -= len(data)
                writer.write(data)
                await writer.drain()
                if is_request and self.where == "request":
                    self.fire()
        except OSError:
            pass  # one of the connections is closed
        finally:
            writer.close()

    async def connected(self, connection) -> None:
        reader, writer = await asyncio.open_connection(sock=connection)
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return
        self.writers |= {writer, server_writer}
        await asyncio.gather(
            self.pass_on(reader, server_writer, True), self.pass_on(server_reader, writer, False)
        )
        self.writers -= {writer, server_writer}

    def listen(self) -> None:
        if self.listener is None:
            self.listener = socket.create_server(("127.0.0.1", self.own_port))
            self.listener.setblocking(False)
            self.spawn(self.accept(self.listener))

    async def accept(self, listener) -> None:
        while listener is self.listener:
            connection, _ = await asyncio.get_running_loop().sock_accept(listener)
            self.spawn(self.connected(connection))

    def spawn(self, work) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def close(self) -> None:
        if self.listener is not None:
            asyncio.get_running_loop().remove_reader(self.listener)
            self.listener.close()
        self.listener = None

    async def run(self) -> None:
        self.listen()
        print(f"listening on {self.own_port}", flush=True)
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            match line.split():
                case ["target", port]:
                    self.port = int(port)
                    self.listen()
                    print("ok", flush=True)
                case ["down"]:
                    self.close()
                    print("ok", flush=True)
                case ["arm", where, count, process]:
                    self.where, self.count, self.process = where, int(count), int(process)
                    print("ok", flush=True)
                case ["disarm"]:
                    print("fired" if self.where == "fired" else "idle", flush=True)
                    self.where = ""
        os._exit(0)


asyncio.run(Proxy().run())
