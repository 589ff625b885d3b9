"""`python -m inspector.front`: the front on a socket, before the processes that answer."""

import argparse
import asyncio
import logging
import resource
import signal
import socket
from collections.abc import Sequence
from pathlib import Path

from .requests import HEAD_BYTES, Pace, Room
from .server import Front

# Beyond it a visitor's line is dropped, and tried again by the system a second later.
BACKLOG = 1024


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM or SIGINT."""
    options = read_options(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    front = Front(
        pages=options.pages,
        posting=options.posting,
        room=Room(options.room_bytes),
        body_bytes=options.body_bytes,
        pace=Pace(silence_s=options.silence, grace_s=options.grace, bytes_per_s=options.rate),
        head_s=options.head,
        most=options.connections,
        max_each=options.connections_each or options.connections,
    )
    asyncio.run(serve(front, open_socket(options.bind)))


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m inspector.front", description=__doc__)
    parser.add_argument("--bind", required=True, help="HOST:PORT, or fd://N for a socket that is inherited")
    parser.add_argument("--pages", type=Path, required=True, help="the socket of the processes that answer pages")
    parser.add_argument("--posting", type=Path, required=True, help="the socket of those that take bodies in")
    parser.add_argument("--head", type=float, default=10.0, help="seconds that a head may take")
    parser.add_argument("--silence", type=float, default=30.0, help="seconds that a sender may be silent in a body")
    parser.add_argument("--grace", type=float, default=30.0, help="seconds before a body has to keep the least rate")
    parser.add_argument("--rate", type=float, default=5.0, help="the least bytes a second of a body")
    parser.add_argument("--room-bytes", type=int, default=4 * 1024**3, help="bytes of all bodies that are coming in")
    parser.add_argument("--body-bytes", type=int, default=2 * 1024**3, help="bytes of one delivery")
    parser.add_argument("--connections", type=int, default=2000, help="connections at a time")
    parser.add_argument("--connections-each", type=int, default=600, help="of one address; 0 behind a proxy: no limit")
    return parser.parse_args(arguments)


def open_socket(bind: str) -> socket.socket:
    """The socket that is served."""
    if bind.startswith("fd://"):
        return socket.socket(fileno=int(bind.removeprefix("fd://")))
    host, _, port = bind.rpartition(":")
    return socket.create_server((host, int(port)), backlog=BACKLOG)


async def serve(front: Front, listener: socket.socket) -> None:
    """Serve until a signal comes; what the processes behind have whole then is still answered."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    server = await asyncio.start_server(front.serve, sock=listener, limit=HEAD_BYTES, backlog=BACKLOG)
    await stopped.wait()
    server.close()
    await front.finish()


if __name__ == "__main__":
    main()
