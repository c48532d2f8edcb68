// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <motet/motet.hpp>
#include <stop_token>

/// A client that sends no line for so long is disconnected.
inline constexpr auto idle_limit = std::chrono::seconds(30);

/// Answers each line, a name, with a greeting, until `stop`; then each client gets the answers to
/// the lines that it has sent.
void serve_greetings(motet::net::tcp_listener& listener, const std::stop_token& stop);
