// SPDX-License-Identifier: MIT
// Files as answers.
#pragma once

#include <motet/http/serve.hpp>
#include <string>

namespace motet { inline namespace MOTET_ABI { namespace http {

/// Responds to GET and HEAD with a file, or a part of it; supports Range, If-Range, If-None-Match
/// and If-Modified-Since. Sets Content-Type according to the file name's extension, unless it is
/// set already.
/// Switchpoint.
/// Throws: status_error: 404 if there is no such file, 403 if it cannot be read, 405 for other
///         methods, 416 for an unsatisfiable range; as response::write().
/// Source: RFC 9110, 13 and 14.
void send_file(request& message, response& answer, const std::string& path);

/// Returns: a handler for a route that ends with `{path...}`: it sends that file below `directory`,
///          or index.html for a directory. No path leads out of it, but links are followed.
/// Not a switchpoint.
handler files(std::string directory);

}}}  // namespace motet::MOTET_ABI::http
