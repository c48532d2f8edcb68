// SPDX-License-Identifier: MIT
// TCP: endpoints, streams, listeners.
#pragma once

#include <motet/net/endpoint.hpp>
#include <motet/net/tcp_listener.hpp>
#include <motet/net/tcp_stream.hpp>
