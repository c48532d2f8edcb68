// SPDX-License-Identifier: MIT
// The server's clients: their commands, in turn, and the log in which what was answered is.
#pragma once

#include <motet/motet.hpp>
#include <string>

/// Reads the log, and serves until `how` says that it is to drain. Without a path there is no log.
/// The store is empty at first. One call at a time.
void serve_store(motet::net::tcp_listener& listener, const std::string& path_of_log, bool syncs,
                 const motet::net::serve_options& how);
