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
    const std::string_view part = take_before(pattern, '/');
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
  return is_named(part) && is_rest(part) ? path : take_before(path, '/');
}

/// A name stands for at least one character, unless it stands for all the rest.
bool matches(const std::string& part, std::string_view segment) {
  if (is_named(part)) return !segment.empty() || is_rest(part);
  std::string decoded;
  decode(segment, false, decoded);
  return decoded == part;
}

/// Whether `method` is answered by a handler for `by`.
bool answers(std::string_view by, std::string_view method) noexcept {
  return by == method || (by == "GET" && method == "HEAD");
}

/// Whether a request that fits both patterns is for the first.
bool is_nearer(const std::vector<std::string>& one, const std::vector<std::string>& other) {
  const auto rank = [](const std::string& part) {
    return !is_named(part) ? 0 : !is_rest(part) ? 1 : 2;
  };
  return std::lexicographical_compare(
      one.begin(), one.end(), other.begin(), other.end(),
      [&](const std::string& a, const std::string& b) { return rank(a) < rank(b); });
}

}  // namespace

router& router::on(std::string_view method, std::string_view pattern, handler called) {
  route made{std::string(method), parts_of(pattern), std::move(called)};
  const auto place = std::find_if(routes_.begin(), routes_.end(), [&](const route& each) {
    return is_nearer(made.parts, each.parts);
  });
  routes_.insert(place, std::move(made));
  return *this;
}

router& router::get(std::string_view pattern, handler called) {
  return on("GET", pattern, std::move(called));
}

router& router::post(std::string_view pattern, handler called) {
  return on("POST", pattern, std::move(called));
}

router& router::put(std::string_view pattern, handler called) {
  return on("PUT", pattern, std::move(called));
}

router& router::del(std::string_view pattern, handler called) {
  return on("DELETE", pattern, std::move(called));
}

/// Notes in `asked`, unless that is null, what the names of the pattern stand for. The path is
/// taken apart before its parts are decoded: an encoded slash divides nothing. Source: RFC
/// 3986, 2.4.
bool router::fits(const route& one, std::string_view path, request* asked) {
  if (!path.starts_with('/')) return false;
  path.remove_prefix(1);
  bool more = true;
  for (const std::string& part : one.parts) {
    if (!more) return false;
    const std::string_view segment = segment_for(part, path);
    if (!matches(part, segment)) return false;
    if (is_named(part) && asked != nullptr) {
      std::string decoded;
      decode(segment, false, decoded);
      asked->connection_.parameters().emplace_back(name_of(part), std::move(decoded));
    }
    more = segment.size() < path.size();
    path = more ? path.substr(segment.size() + 1) : std::string_view();
  }
  return !more;
}

namespace {

/// Adds a method to those of an Allow field, once. Source: RFC 9110, 10.2.1.
void allow(std::vector<std::string_view>& methods, std::string_view method) {
  if (std::find(methods.begin(), methods.end(), method) == methods.end()) methods.push_back(method);
  if (method == "GET") allow(methods, "HEAD");
}

}  // namespace

void router::operator()(request& asked, response& answer) const {
  std::vector<std::string_view> methods;
  for (const route& each : routes_) {
    const std::string_view path = asked.connection_.encoded_path();
    if (!fits(each, path, nullptr)) continue;
    if (answers(each.method, asked.method())) {
      fits(each, path, &asked);
      return each.function(asked, answer);
    }
    allow(methods, each.method);
  }
  if (methods.empty()) throw standard_error(404);
  std::string allowed;
  for (const std::string_view each : methods) {
    allowed.append(allowed.empty() ? "" : ", ").append(each);
  }
  answer.status(405).header("Allow", allowed);
}

}}}  // namespace motet::MOTET_ABI::http
