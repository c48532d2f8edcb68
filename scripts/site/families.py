# SPDX-License-Identifier: MIT
"""Which headers are told of together: a part of the site's menu, and a page of the manual."""

# name of the manual page: (title, headers)
FAMILIES = {
    "fibers": ("Fibers", ["fibers/fiber", "fibers/fiber_state", "fibers/suspend", "fibers/local", "fibers/coroutine",
                          "fibers/origin", "base/call_site"]),
    "structure": ("Parents and children", ["fibers/group", "fibers/await", "fibers/supervise", "fibers/retry"]),
    "cancellation": ("Cancellation and time limits", ["cancellation/cancel", "cancellation/cancel_scope",
                                                      "cancellation/cancel_reason",
                                                      "cancellation/move_on_when_closed"]),
    "errors": ("Errors", ["base/errors"]),
    "channels": ("Channels and messages", ["sync/channel", "sync/channel_ends", "sync/pop_iterator", "sync/select",
                                           "sync/select_cases", "sync/broadcast", "sync/watch", "sync/subscription",
                                           "sync/actor", "sync/future",
                                           "sync/future_fwd"]),
    "locks": ("Locks and meeting points", ["sync/mutex", "sync/recursive_mutex", "sync/shared_mutex",
                                           "sync/condition_variable", "sync/semaphore", "sync/event",
                                           "sync/notification", "sync/latch", "sync/barrier", "sync/once",
                                           "sync/rate_limiter", "sync/resource_pool", "sync/timeslice_lock"]),
    "time": ("Time", ["base/clock", "sync/time", "sync/every"]),
    "threads": ("Threads", ["threads/thread", "threads/thread_pool", "threads/parallel", "threads/executor",
                            "threads/portal", "threads/offload"]),
    "io": ("Descriptors and streams", ["io/io", "io/file_verbs", "io/splice_verbs", "io/fd", "io/stream", "io/reader",
                                       "io/writer", "io/copy", "io/pipe"]),
    "files": ("Files", ["io/file", "io/directory", "io/directory_walk", "io/file_watch"]),
    "net": ("The net", ["net", "net/endpoint", "net/socket_stream", "net/socket_listener", "net/datagram_socket",
                        "net/tcp_stream", "net/tcp_listener", "net/serve_options", "net/listen_fds", "net/udp_socket",
                        "net/unix_stream", "net/unix_listener", "net/unix_datagram", "net/dns"]),
    "processes": ("Programs and signals", ["io/process", "io/signal_set", "runtime/run_until_signal"]),
    "runtime": ("The runtime", ["motet", "runtime/run", "runtime/options", "runtime/backend", "runtime/embed",
                                "base/version"]),
    "observability": ("What a program tells", ["observe/debug", "observe/stats", "observe/trace"]),
    "tls": ("TLS", ["tls"]),
    "posix": ("Blocking calls of the C library", ["posix"]),
    "testing": ("Deterministic simulation", ["testing"]),
    "http": ("HTTP", ["http", "http/serve", "http/serve_options", "http/router", "http/request", "http/fields",
                      "http/files", "http/client", "http/client_options", "http/websocket"]),
    "compat": ("Other libraries", ["compat/asio", "compat/boost_fiber", "compat/boost_fiber/fiber",
                                   "compat/boost_fiber/this_fiber", "compat/boost_fiber/channels",
                                   "compat/boost_fiber/futures", "compat/boost_fiber/tasks", "compat/boost_fiber/locks",
                                   "compat/boost_fiber/fiber_specific_ptr", "compat/boost_fiber/stacks",
                                   "compat/boost_fiber/scheduling", "compat/boost_fiber/errors"]),
}

# Types in namespace detail that programs get, and use without naming them.
UNNAMED = {"select_case", "subscription_to", "pop_iterator", "socket_stream", "socket_listener", "datagram_socket"}


def is_former_path(path):
    """Whether a header only includes the one that has taken its place."""
    return "// The former path of" in path.read_text()


def check_complete(include):
    """Raises an AssertionError unless each public header is in one family."""
    listed = [header for _, headers in FAMILIES.values() for header in headers]
    headers = {str(path.relative_to(folder).with_suffix("")) for folder in include for path in folder.rglob("*.hpp")
               if not is_former_path(path)}
    public = {header for header in headers if not header.startswith("detail/")}
    assert len(listed) == len(set(listed)), "a header is in two families"
    assert set(listed) == public, f"families.py: {sorted(set(listed) ^ public)}"
