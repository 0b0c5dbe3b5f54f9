# The client of the benchmark over Python's `websockets`: sends a binary message for each that comes
# back, and prints a sample as JSON.
#
#   websockets-client.py URL LENGTH IN_FLIGHT SECONDS

import asyncio
import json
import sys
import threading
import time

import websockets


async def run(url, length, in_flight, seconds):
    """Returns the number of messages that came back."""
    message = b"x" * length
    count = 0
    async with websockets.connect(url, compression=None, ping_interval=None, max_size=1 << 24) as socket:
        end = time.monotonic() + seconds
        for _ in range(in_flight):
            await socket.send(message)
        missing = in_flight
        while missing > 0:
            received = await socket.recv()
            if not isinstance(received, bytes) or len(received) != length:
                sys.exit(f"a message of {len(received)} bytes instead of {length}")
            count += 1
            if time.monotonic() < end:
                await socket.send(message)
            else:
                missing -= 1
    return count


def peak_memory():
    """Returns the peak of the resident memory in MiB."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


async def main():
    url, length, in_flight, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    await run(url, length, in_flight, seconds / 5)
    processor, start = time.process_time(), time.monotonic()
    count = await run(url, length, in_flight, seconds)
    elapsed = time.monotonic() - start
    sample = {
        "messagesPerSecond": count / elapsed,
        "cpuPerMessage": (time.process_time() - processor) / count * 1e6,
        "peakMemory": peak_memory(),
        "threads": threading.active_count(),
    }
    print(json.dumps(sample))


asyncio.run(main())
