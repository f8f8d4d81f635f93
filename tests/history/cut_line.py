"""A line to a PostgreSQL server that can be cut: a proxy between its clients and its socket."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from postgres import PASSWORD, USER

PIECE = 65536
ANSWERED = 0.5


class Line:
    """Passes bytes on, until somebody cuts it. While it is down nobody gets through."""

    def __init__(self, socket_path: Path) -> None:
        self._server = str(socket_path)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.up = True
        self.cut_when: Callable[[bytes], str] = lambda _: ""
        """Asked for everything that a client sends: `before` cuts before it arrives, `after` once it was answered."""
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, database: str) -> str:
        host, port = self._listening.getsockname()
        return f"postgresql://{USER}:{quote(PASSWORD)}@{host}:{port}/{database}?sslmode=disable&gssencmode=disable"

    def down(self) -> None:
        """Cut all connections, and refuse new ones."""
        self.up = False
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.down()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            if not self.up:
                client.close()
                continue
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            with self._lock:
                self._pairs.append((client, server))
            threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        with client, server, selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ)
            selector.register(server, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    try:
                        data = key.fileobj.recv(PIECE)  # type: ignore[union-attr]
                        if not data:
                            return
                        if key.fileobj is server:
                            client.sendall(data)
                            continue
                        when = self.cut_when(data)
                        if when != "before":
                            server.sendall(data)
                        if when == "after":
                            server.settimeout(ANSWERED)
                            with contextlib.suppress(TimeoutError):  # half a message has no answer
                                server.recv(PIECE)  # its answer, which nobody gets
                        if when:
                            self.down()
                            return
                    except OSError:
                        return


@contextmanager
def line(sockets: Path) -> Iterator[Line]:
    one = Line(sockets / ".s.PGSQL.5432")
    try:
        yield one
    finally:
        one.close()
