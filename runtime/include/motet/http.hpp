// SPDX-License-Identifier: MIT
// HTTP/1.1, using Boost.Beast's parser. A program that includes this links with motet-http.
#pragma once

#include <motet/http/client.hpp>
#include <motet/http/client_options.hpp>
#include <motet/http/fields.hpp>
#include <motet/http/files.hpp>
#include <motet/http/request.hpp>
#include <motet/http/router.hpp>
#include <motet/http/serve.hpp>
#include <motet/http/serve_options.hpp>
#include <motet/http/websocket.hpp>
