// SPDX-License-Identifier: MIT
// TCP: where, the stream, the listener.
#pragma once

#include <motet/net/endpoint.hpp>
#include <motet/net/tcp_listener.hpp>
#include <motet/net/tcp_stream.hpp>
