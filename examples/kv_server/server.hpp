// SPDX-License-Identifier: MIT
// The sessions of the server's clients, and the log of the changes that were answered.
#pragma once

#include <motet/motet.hpp>
#include <string>

/// Clears the store, replays the log, and serves until `how.drain` is requested. An empty path: no
/// log. One call at a time.
void serve_store(motet::net::tcp_listener& listener, const std::string& path_of_log, bool syncs,
                 const motet::net::serve_options& how);
