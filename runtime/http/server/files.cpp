// SPDX-License-Identifier: MIT
// See motet/http/files.hpp. Source: RFC 9110, 13.2.2 and 14.2.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <motet/errors.hpp>
#include <motet/fd.hpp>
#include <motet/http/files.hpp>
#include <motet/io.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "http/lists.hpp"
#include "http/reason_phrase.hpp"
#include "http/server/cached_file.hpp"
#include "http/server/date.hpp"
#include "http/server/server_connection.hpp"
#include "http/server/target.hpp"
#include "http/text.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

constexpr std::size_t largest_piece = std::size_t{128} * 1024;
constexpr std::uint64_t least_for_kernel = std::uint64_t{64} * 1024;

constexpr std::pair<std::string_view, std::string_view> kinds[] = {
    {"html", "text/html; charset=utf-8"},
    {"htm", "text/html; charset=utf-8"},
    {"css", "text/css; charset=utf-8"},
    {"js", "text/javascript; charset=utf-8"},
    {"mjs", "text/javascript; charset=utf-8"},
    {"json", "application/json"},
    {"txt", "text/plain; charset=utf-8"},
    {"md", "text/markdown; charset=utf-8"},
    {"csv", "text/csv; charset=utf-8"},
    {"xml", "application/xml"},
    {"svg", "image/svg+xml"},
    {"png", "image/png"},
    {"jpg", "image/jpeg"},
    {"jpeg", "image/jpeg"},
    {"gif", "image/gif"},
    {"webp", "image/webp"},
    {"ico", "image/x-icon"},
    {"pdf", "application/pdf"},
    {"wasm", "application/wasm"},
    {"woff2", "font/woff2"},
    {"mp4", "video/mp4"},
    {"gz", "application/gzip"},
    {"zip", "application/zip"},
};

std::string_view kind_of(std::string_view path) noexcept {
  const std::size_t dot = path.rfind('.');
  const std::string_view ending = dot == std::string_view::npos ? "" : path.substr(dot + 1);
  const auto* found = std::find_if(std::begin(kinds), std::end(kinds), [&](const auto& each) {
    return equal_but_for_case(each.first, ending);
  });
  return found == std::end(kinds) ? "application/octet-stream" : found->second;
}

/// Cached data is read immediately, which is the common case; else another thread, or a ring,
/// waits.
std::size_t read_at(const fd& from, std::span<std::byte> room, off_t begin) {
  const iovec part{room.data(), room.size()};
  const ssize_t size = ::preadv2(from.get(), &part, 1, begin, RWF_NOWAIT);
  return size > 0 ? static_cast<std::size_t>(size) : io::pread(from.get(), room, begin);
}

enum class comparison { strong, weak };

/// Source: RFC 9110, 8.8.3.2.
bool are_same(std::string_view one, std::string_view other, comparison how) noexcept {
  const bool one_is_weak = one.starts_with("W/");
  const bool other_is_weak = other.starts_with("W/");
  if (how == comparison::strong && (one_is_weak || other_is_weak)) return false;
  return one.substr(one_is_weak ? 2 : 0) == other.substr(other_is_weak ? 2 : 0);
}

bool lists(std::string_view tags, std::string_view tag, comparison how) noexcept {
  while (!tags.empty()) {
    const std::string_view each = trimmed(take_before(tags, ','));
    if (each == "*" || are_same(each, tag, how)) return true;
  }
  return false;
}

/// Treats a field on several lines as one list. Source: RFC 9110, 5.3.
/// Returns: std::nullopt if there is no such field; otherwise whether it lists the tag.
std::optional<bool> any_lists(const request& asked, std::string_view name, std::string_view tag,
                              comparison how) noexcept {
  std::optional<bool> found;
  for (const field each : asked.headers()) {
    if (!equal_but_for_case(each.name, name)) continue;
    found = found.value_or(false) || lists(each.value, tag, how);
  }
  return found;
}

std::optional<std::time_t> date_in(const request& asked, std::string_view name) noexcept {
  return time_of(only_value(asked.headers(), name).value_or(""));
}

/// Whether the client wants another state of the file than it has.
bool is_another(const request& asked, const file_metadata& what) noexcept {
  if (const auto same = any_lists(asked, "if-match", what.tag(), comparison::strong)) return !*same;
  const std::optional<std::time_t> wanted = date_in(asked, "if-unmodified-since");
  return wanted.has_value() && what.changed > *wanted;
}

/// Whether the client has the file as it is.
bool is_known(const request& asked, const file_metadata& what) noexcept {
  if (const auto same = any_lists(asked, "if-none-match", what.tag(), comparison::weak))
    return *same;
  const std::optional<std::time_t> known = date_in(asked, "if-modified-since");
  return known.has_value() && what.changed <= *known;
}

struct part {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
};

/// Whether the date is that of this very state: within its second the file may have changed again.
/// Source: RFC 9110, 8.8.2.2.
bool is_date_of(std::string_view text, const file_metadata& what) noexcept {
  return time_of(text) == what.changed && what.is_settled();
}

/// Whether the file is in the state for which the client wants a range. Source: RFC 9110, 13.1.5.
bool range_applies(const request& asked, const file_metadata& what) noexcept {
  const std::string_view only_if = asked.header("if-range");
  return only_if.empty() || are_same(only_if, what.tag(), comparison::strong) ||
         is_date_of(only_if, what);
}

/// "first-last": the bytes from `first` on, up to and including `last`. Without `first` the last
/// `last` bytes of the file.
struct byte_range {
  std::optional<std::uint64_t> first;
  std::optional<std::uint64_t> last;
};

/// Returns: std::nullopt if `text` is not one range. Source: RFC 9110, 14.1.2.
std::optional<byte_range> read_range(std::string_view text) noexcept {
  const std::string_view first = trimmed(take_before(text, '-'));
  const std::string_view last = trimmed(text);
  const byte_range found{number_of(first), number_of(last)};
  if (found.first.has_value() == first.empty() || found.last.has_value() == last.empty()) {
    return std::nullopt;
  }
  if (!found.first.has_value()) return found.last.has_value() ? std::optional(found) : std::nullopt;
  if (found.last.value_or(*found.first) < *found.first) return std::nullopt;
  return found;
}

/// Returns: the bytes of `range` in a file of `size` bytes, none if there are none.
part part_of(const byte_range& range, std::uint64_t size) noexcept {
  if (!range.first.has_value()) {
    const std::uint64_t count = std::min(*range.last, size);
    return {size - count, count};
  }
  if (*range.first >= size) return {};
  return {*range.first, std::min(range.last.value_or(size - 1), size - 1) - *range.first + 1};
}

/// Returns: std::nullopt for the whole file: no range, several ranges, or another unit than bytes.
/// Throws: status_error if the file does not contain the range.
std::optional<part> part_asked_for(const request& asked, const file_metadata& what) {
  constexpr std::string_view unit = "bytes=";
  const std::string_view text = asked.header("range");
  if (asked.method() != "GET" || !text.starts_with(unit)) return std::nullopt;
  if (!range_applies(asked, what)) return std::nullopt;
  const std::optional<byte_range> range = read_range(text.substr(unit.size()));
  if (!range.has_value()) return std::nullopt;
  const part found = part_of(*range, what.size);
  if (found.size == 0) throw standard_error(416);
  return found;
}

/// Throws: std::runtime_error if the file is shorter than it was.
void send_part(const fd& from, const part& what, response_writer& to) {
  const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(what.size, largest_piece));
  std::unique_ptr<std::byte[]> buffer;
  for (std::uint64_t sent = 0; sent < what.size;) {
    const auto begin = static_cast<off_t>(what.begin + sent);
    // Less is quicker in one packet with the head. What is not in memory a read brings there.
    if (what.size - sent >= least_for_kernel) {
      sent += to.send_part(from.get(), begin, what.size - sent);
      if (sent == what.size) return;
    }
    if (buffer == nullptr) buffer = std::make_unique_for_overwrite<std::byte[]>(most);
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(what.size - sent, most));
    const std::size_t size =
        read_at(from, {buffer.get(), wanted}, static_cast<off_t>(what.begin + sent));
    if (size == 0)
      throw std::runtime_error("send_file(): the file was truncated while it was being sent");
    to.write(std::span(buffer.get(), size));
    sent += size;
  }
}

bool is_directory(const std::string& path) {
  struct statx found{};
  std::error_code absent;
  io::statx(AT_FDCWD, path.c_str(), 0, STATX_TYPE, found, absent);
  return !absent && S_ISDIR(found.stx_mode);
}

/// Returns: a target with a slash behind its path, relative to the host that was asked.
std::string with_slash(std::string_view target) {
  const std::optional<http::target> asked = parse_target(target);
  std::string path(asked.has_value() ? asked->path : target);
  path += '/';
  if (path.starts_with("//")) path.insert(0, "/.");  // or it would name a host
  const bool has_query = asked.has_value() && !asked->query.empty();
  return has_query ? path + '?' + std::string(asked->query) : path;
}

bool leads_out(std::string_view path) noexcept {
  while (!path.empty()) {
    if (take_before(path, '/') == "..") return true;
  }
  return false;
}

}  // namespace

void send_file(request& asked, response& answer, const std::string& path) {
  const bool to_head = asked.method() == "HEAD";
  if (!to_head && asked.method() != "GET") {
    answer.status(405).header("Allow", "GET, HEAD");
    return;
  }
  // An answer that goes on needs its file, whoever asks for others meanwhile.
  const std::shared_ptr<const cached_file> found = cached_file::at(path);
  const fd& opened = found->file;
  const file_metadata& what = found->what;
  answer.header("ETag", what.tag());
  // A file of the future would be newer than its own answer.
  if (what.changed <= std::time(nullptr)) answer.header("Last-Modified", what.date);
  answer.header("Accept-Ranges", "bytes");
  if (is_another(asked, what)) {
    answer.status(412);
    return;
  }
  if (is_known(asked, what)) {
    answer.status(304);
    return;
  }
  std::optional<part> only;
  try {
    only = part_asked_for(asked, what);
  } catch (const status_error& error) {
    answer.status(error.status()).header("Content-Range", "bytes */" + std::to_string(what.size));
    return;
  }
  if (only.has_value()) {
    answer.status(206).header("Content-Range", "bytes " + std::to_string(only->begin) + '-' +
                                                   std::to_string(only->begin + only->size - 1) +
                                                   '/' + std::to_string(what.size));
  }
  const part sent = only.value_or(part{0, what.size});
  if (!answer.headers().find("content-type").has_value()) {
    answer.header("Content-Type", kind_of(path));
  }
  answer.header("Content-Length", std::to_string(sent.size));
  if (!to_head) send_part(opened, sent, answer.connection_.answer());
}

handler files(std::string directory) {
  return [directory = std::move(directory)](request& asked, response& answer) {
    const std::string_view path = asked.parameter("path");
    if (leads_out(path)) throw standard_error(404);
    std::string whole = directory + '/' + std::string(path);
    const bool with_index = whole.ends_with('/');
    if (with_index) whole += "index.html";
    try {
      send_file(asked, answer, whole);
    } catch (const status_error& error) {
      if (error.status() != 404 || with_index || !is_directory(whole)) throw;
      answer.status(308).header("Location", with_slash(asked.target()));
    }
  };
}

}}}  // namespace motet::MOTET_ABI::http
