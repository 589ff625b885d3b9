"""The socket the pages are served on, taken before anything is started, so that a taken port costs no time."""

import errno
import socket

from .errors import PortForbiddenError, PortTakenError

HOST = "127.0.0.1"
BACKLOG = 1024


def open_listener(port: int) -> socket.socket:
    """Listen on the loopback interface.

    Raises:
        PortTakenError, PortForbiddenError: naming the port and how to choose another.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # Connections of a server that was just stopped do not hold the port; one that still listens does.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(BACKLOG)
    except OSError as refused:
        listener.close()
        if refused.errno == errno.EADDRINUSE:
            raise PortTakenError(HOST, port) from refused
        raise PortForbiddenError(
            f"Port {port} on {HOST} cannot be opened ({refused.strerror}): choose another with PORT=8000 make run."
        ) from refused
    return listener
