// SPDX-License-Identifier: MIT
// See motet/http/router.hpp.
#include <algorithm>
#include <motet/http/router.hpp>
#include <stdexcept>
#include <utility>

#include "http/reason_phrase.hpp"
#include "http/server/server_connection.hpp"
#include "http/server/target.hpp"
#include "http/text.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

bool is_named(std::string_view part) noexcept {
  return part.starts_with('{');
}

bool is_rest(std::string_view part) noexcept {
  return part.ends_with("...}");
}

/// Returns: the name between the braces, without the dots.
std::string_view name_of(std::string_view part) noexcept {
  part = part.substr(1, part.size() - 2);
  if (part.ends_with("...")) part.remove_suffix(3);
  return part;
}

std::vector<std::string> parts_of(std::string_view pattern) {
  const std::string text(pattern);
  if (!pattern.starts_with('/'))
    throw std::invalid_argument("router: the pattern must begin with a slash: '" + text + "'");
  std::vector<std::string> parts;
  pattern.remove_prefix(1);
  do {
    const std::string_view part = split_before(pattern, '/');
    const bool has_brace = part.find_first_of("{}") != std::string_view::npos;
    const bool is_whole = part.size() > 2 && part.starts_with('{') &&
                          part.find_first_of("{}", 1) == part.size() - 1 && !name_of(part).empty();
    if (has_brace && (!is_whole || (is_rest(part) && !pattern.empty()))) {
      throw std::invalid_argument(
          "router: {name} must be a whole segment, and {name...} the last: '" + text + "'");
    }
    parts.emplace_back(part);
  } while (!pattern.empty());
  if (text.size() > 1 && text.ends_with('/')) parts.emplace_back();
  return parts;
}

/// Returns: the part of `path` that stands for `part` of a pattern.
std::string_view segment_for(const std::string& part, std::string_view path) noexcept {
  return is_named(part) && is_rest(part) ? path : split_before(path, '/');
}

/// A name stands for at least one character, unless it stands for all the rest.
bool matches(const std::string& part, std::string_view segment) {
  if (is_named(part)) return !segment.empty() || is_rest(part);
  std::string value;
  decode(segment, false, value);
  return value == part;
}

/// Whether `method` is answered by a handler for `route_method`.
bool answers(std::string_view route_method, std::string_view method) noexcept {
  return route_method == method || (route_method == "GET" && method == "HEAD");
}

/// Whether a request that fits both patterns is for the first.
bool is_nearer(const std::vector<std::string>& first, const std::vector<std::string>& second) {
  const auto rank = [](const std::string& part) {
    return !is_named(part) ? 0 : !is_rest(part) ? 1 : 2;
  };
  return std::lexicographical_compare(
      first.begin(), first.end(), second.begin(), second.end(),
      [&](const std::string& a, const std::string& b) { return rank(a) < rank(b); });
}

}  // namespace

router& router::on(std::string_view method, std::string_view pattern, handler function) {
  route entry{std::string(method), parts_of(pattern), std::move(function)};
  const auto position = std::find_if(routes_.begin(), routes_.end(), [&](const route& neighbour) {
    return is_nearer(entry.parts, neighbour.parts);
  });
  routes_.insert(position, std::move(entry));
  return *this;
}

router& router::get(std::string_view pattern, handler function) {
  return on("GET", pattern, std::move(function));
}

router& router::post(std::string_view pattern, handler function) {
  return on("POST", pattern, std::move(function));
}

router& router::put(std::string_view pattern, handler function) {
  return on("PUT", pattern, std::move(function));
}

router& router::del(std::string_view pattern, handler function) {
  return on("DELETE", pattern, std::move(function));
}

/// Notes in `request`, unless that is null, what the names of the pattern stand for. The path is
/// taken apart before its parts are decoded: an encoded slash divides nothing. Source: RFC
/// 3986, 2.4.
bool router::fits(const route& candidate, std::string_view path, request* request) {
  if (!path.starts_with('/')) return false;
  path.remove_prefix(1);
  bool has_more = true;
  for (const std::string& part : candidate.parts) {
    if (!has_more) return false;
    const std::string_view segment = segment_for(part, path);
    if (!matches(part, segment)) return false;
    if (is_named(part) && request != nullptr) {
      std::string value;
      decode(segment, false, value);
      request->connection_.parameters().emplace_back(name_of(part), std::move(value));
    }
    has_more = segment.size() < path.size();
    path = has_more ? path.substr(segment.size() + 1) : std::string_view();
  }
  return !has_more;
}

namespace {

/// Adds a method to those of an Allow field, once. Source: RFC 9110, 10.2.1.
void allow(std::vector<std::string_view>& methods, std::string_view method) {
  if (std::find(methods.begin(), methods.end(), method) == methods.end()) methods.push_back(method);
  if (method == "GET") allow(methods, "HEAD");
}

}  // namespace

void router::operator()(request& request, response& answer) const {
  std::vector<std::string_view> methods;
  for (const route& candidate : routes_) {
    const std::string_view path = request.connection_.encoded_path();
    if (!fits(candidate, path, nullptr)) continue;
    if (answers(candidate.method, request.method())) {
      fits(candidate, path, &request);
      return candidate.function(request, answer);
    }
    allow(methods, candidate.method);
  }
  if (methods.empty()) throw standard_error(404);
  std::string method_list;
  for (const std::string_view method : methods) {
    method_list.append(method_list.empty() ? "" : ", ").append(method);
  }
  answer.status(405).header("Allow", method_list);
}

}}}  // namespace motet::MOTET_ABI::http
