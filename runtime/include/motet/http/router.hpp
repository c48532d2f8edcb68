// SPDX-License-Identifier: MIT
// Handlers by method and path.
#pragma once

#include <motet/http/serve.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace http {

/// A handler that dispatches to others. In a pattern, `{name}` matches one segment of the path, and
/// `{name...}`, at its end, all the rest. Literal segments take precedence over names; of two
/// patterns that match, the one that was added first wins.
class router {
 public:
  /// Calls `function` for requests of this method. Handlers for GET also answer HEAD.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument for a pattern that does not begin with a slash, or with braces
  ///         that do not enclose a whole segment.
  router& on(std::string_view method, std::string_view pattern, handler function);
  router& get(std::string_view pattern, handler function);
  router& post(std::string_view pattern, handler function);
  router& put(std::string_view pattern, handler function);
  router& del(std::string_view pattern, handler function);

  /// Answers 404 if no pattern matches, and 405 if one matches, but not for the method.
  /// Switchpoint if the handler is.
  /// Throws: what the handler throws.
  void operator()(request& message, response& answer) const;

 private:
  struct route {
    std::string method;
    std::vector<std::string> parts;  // "{name}", "{name...}" or a literal segment
    handler function;
  };

  static bool fits(const route& candidate, std::string_view path, request* message);

  std::vector<route> routes_;
};

}}}  // namespace motet::MOTET_ABI::http
