# SPDX-License-Identifier: MIT
"""Which headers are told of together: a part of the site's menu, and a page of the manual."""

# name of the manual page: (title, headers)
FAMILIES = {
    "fibers": ("Fibers", ["fiber", "suspend", "local", "coroutine", "origin", "call_site"]),
    "structure": ("Parents and children", ["group", "await", "supervise", "retry"]),
    "cancellation": ("Cancellation and time limits", ["cancel", "cancel_scope", "cancel_reason", "move_on_when_closed"]),
    "errors": ("Errors", ["errors"]),
    "channels": ("Channels and messages", ["channel", "channel_ends", "select", "broadcast", "watch", "actor", "future"]),
    "locks": ("Locks and meeting points", ["mutex", "recursive_mutex", "shared_mutex", "condition_variable", "semaphore", "event",
                                           "notification", "latch", "barrier", "once", "rate_limiter", "resource_pool",
                                           "timeslice_lock"]),
    "time": ("Time", ["clock", "time", "every"]),
    "threads": ("Threads", ["thread", "thread_pool", "executor", "offload"]),
    "io": ("Descriptors and streams", ["io", "fd", "stream", "reader", "writer", "copy", "pipe"]),
    "files": ("Files", ["file", "directory", "directory_walk", "file_watch"]),
    "net": ("The net", ["net", "net/endpoint", "net/tcp_stream", "net/tcp_listener", "net/serve_options", "net/listen_fds",
                        "net/udp_socket", "net/unix_stream", "net/unix_listener", "net/unix_datagram", "dns"]),
    "processes": ("Programs and signals", ["process", "signal_set", "run_until_signal"]),
    "runtime": ("The runtime", ["motet", "run", "options", "backend", "embed", "version"]),
    "observability": ("What a program tells", ["debug", "stats", "trace"]),
    "tls": ("TLS", ["tls"]),
    "http": ("HTTP", ["http", "http/serve", "http/serve_options", "http/router", "http/request", "http/fields", "http/files",
                      "http/client", "http/client_options", "http/websocket"]),
    "compat": ("Other libraries", ["compat/asio", "compat/boost_fiber", "compat/boost_fiber/fiber", "compat/boost_fiber/this_fiber",
                                   "compat/boost_fiber/channels", "compat/boost_fiber/futures", "compat/boost_fiber/tasks",
                                   "compat/boost_fiber/locks",
                                   "compat/boost_fiber/fiber_specific_ptr", "compat/boost_fiber/stacks",
                                   "compat/boost_fiber/scheduling", "compat/boost_fiber/errors"]),
}

# What a header has only to pass it on.
SHOWN_BY = {
    "group": ["detail/fibers/group", "detail/fibers/group_start"],
    "select": ["detail/sync/basic_cases"],
    "executor": ["detail/threads/executor"],
    "broadcast": ["detail/sync/subscription"],
    "watch": ["detail/sync/subscription"],
    "file": ["detail/io/file_verbs", "detail/io/splice_verbs"],
}


def check_complete(include):
    """Raises an AssertionError unless each public header is in one family."""
    listed = [header for _, headers in FAMILIES.values() for header in headers]
    there = {str(path.relative_to(include).with_suffix("")) for path in include.rglob("*.hpp")}
    public = {header for header in there if not header.startswith("detail/")}
    assert len(listed) == len(set(listed)), "a header is in two families"
    assert set(listed) == public, f"families.py: {sorted(set(listed) ^ public)}"
