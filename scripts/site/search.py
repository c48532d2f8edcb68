#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prepares the index of the site's search, or tries thirty searches in it as the theme does.

usage: search.py prepare SITE
  Leaves out the pages for motet's developers. Words of titles, also the parts of identifiers, and the common terms for
  what a guide describes become tags, which count more than titles; the style sheet hides them.
usage: search.py check SITE
"""

import functools
import json
import pathlib
import re
import sys

INTERNAL = ("runtime/", "tests/", "packaging/", "DESIGN", "CONTRIBUTING", "CHANGELOG", "SECURITY", "LICENSE")

TERMS = {
    "docs/bridges.html": "asio coroutine co_await event glib loop",
    "docs/cancellation.html": "cancel cancellation deadline stop timeout timeouts token",
    "docs/coming_from.html": "asio async await boost go goroutine",
    "docs/communication.html": "actor backpressure channel mutex select",
    "docs/errors.html": "exception exceptions retry",
    "docs/gotchas.html": "deadlock overflow stack",
    "docs/http.html": "client http server websocket",
    "docs/io.html": "directory dns file sendfile socket",
    "docs/observability.html": "debugger gdb metrics profile trace tracing",
    "docs/performance.html": "benchmark benchmarks",
    "docs/processes.html": "child fork process signal subprocess",
    "docs/servers.html": "drain graceful server shutdown systemd",
    "docs/structure.html": "concurrency nursery scope spawn structured supervisor",
    "docs/testing.html": "deterministic mock simulation test tests unit",
    "docs/threads.html": "blocking calls offload pool thread threads",
    "docs/tls.html": "certificate https ssl tls",
}

# A search, and a page that is to be among its first three.
SEARCHES = {
    "spawn": "docs/structure.html",
    "timeout": "docs/cancellation.html",
    "thread pool": "api/threads-thread_pool.html",
    "graceful shutdown": "docs/servers.html",
    "backpressure": "docs/communication.html",
    "structured concurrency": "docs/structure.html",
    "cancellation token": "docs/cancellation.html",
    "goroutine": "docs/coming_from.html",
    "nursery": "docs/structure.html",
    "with_timeout": "api/cancellation-cancel.html",
    "move_on_after": "api/cancellation-cancel.html",
    "channel": "api/sync-channel.html",
    "select": "api/sync-select.html",
    "mutex": "api/sync-mutex.html",
    "unit test": "docs/testing.html",
    "http server": "docs/http.html",
    "websocket": "api/http-websocket.html",
    "certificate": "docs/tls.html",
    "child process": "docs/processes.html",
    "signal": "api/io-signal_set.html",
    "rate limit": "api/sync-rate_limiter.html",
    "retry": "api/fibers-retry.html",
    "supervisor": "docs/structure.html",
    "actor": "api/sync-actor.html",
    "thread local": "api/fibers-local.html",
    "stack overflow": "docs/gotchas.html",
    "debugger": "docs/observability.html",
    "coroutine": "api/fibers-coroutine.html",
    "deadlock": "docs/gotchas.html",
    "benchmark": "docs/performance.html",
}


def tags_of(entry):
    words = set(re.findall(r"\w+", entry["title"].lower()))
    parts = {part for word in words for part in word.split("_") if part}
    return sorted(words | parts | set(TERMS.get(entry["location"], "").split()))


def prepare(file):
    index = json.loads(file.read_text())
    unknown = set(TERMS) - {entry["location"] for entry in index["docs"]}
    if unknown:
        sys.exit(f"search.py: no page of the site is {', '.join(sorted(unknown))}")
    index["docs"] = [entry | {"tags": tags_of(entry)} for entry in index["docs"] if not entry["location"].startswith(INTERNAL)]
    file.write_text(json.dumps(index, separators=(",", ":")))


def indexed(data):
    """Returns: the index that the theme builds in a browser."""
    import lunr.builder
    import lunr.tokenizer
    from lunr.stop_word_filter import stop_word_filter
    from lunr.trimmer import trimmer

    separator = re.compile(data["config"]["separator"])
    lunr.builder.Tokenizer = functools.partial(lunr.tokenizer.Tokenizer, separator=lambda char: bool(separator.fullmatch(char)))
    builder = lunr.builder.Builder()
    builder.pipeline.add(trimmer, stop_word_filter)
    builder.ref("location")
    for name, boost in (("title", 1e3), ("text", 1), ("tags", 1e6)):
        builder.field(name, boost=boost)
    for entry in data["docs"]:
        builder.add(entry)
    return builder.build()


def pages_for(index, query):
    """Returns: the pages in the order in which the theme shows them: whole pages and those with all words come first."""
    words = query.split()
    found = []
    for result in index.search(query + "*"):
        terms = list(result["match_data"].metadata)
        has_all = all(any(term.startswith(word) for term in terms) for word in words)
        found.append((result["score"] * (1 + ("#" not in result["ref"]) + has_all), result["ref"].split("#")[0]))
    return list(dict.fromkeys(page for _, page in sorted(found, reverse=True)))


def check(file):
    index = indexed(json.loads(file.read_text()))
    failures = 0
    for query, page in SEARCHES.items():
        first = pages_for(index, query)[:3]
        if page not in first:
            print(f"'{query}' finds {', '.join(first) or 'nothing'}, and not {page}")
            failures += 1
    sys.exit(1 if failures else 0)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("prepare", "check"):
        sys.exit(__doc__)
    file = pathlib.Path(sys.argv[2]) / "search/search_index.json"
    prepare(file) if sys.argv[1] == "prepare" else check(file)


if __name__ == "__main__":
    main()
