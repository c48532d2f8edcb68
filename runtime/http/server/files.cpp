// SPDX-License-Identifier: MIT
// See motet/http/files.hpp. Source: RFC 9110, 13.2.2 and 14.2.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <motet/http/files.hpp>
#include <motet/io/fd.hpp>
#include <motet/io/file_verbs.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/system_calls.hpp"
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
  const auto* entry = std::find_if(std::begin(kinds), std::end(kinds), [&](const auto& kind) {
    return equal_but_for_case(kind.first, ending);
  });
  return entry == std::end(kinds) ? "application/octet-stream" : entry->second;
}

/// Cached data is read immediately, which is the common case; else another thread, or a ring,
/// waits.
std::size_t read_at(const fd& file, std::span<std::byte> buffer, off_t begin) {
  const iovec part{buffer.data(), buffer.size()};
  const ssize_t size = detail::sys::preadv2(file.get(), &part, 1, begin, RWF_NOWAIT);
  return size > 0 ? static_cast<std::size_t>(size) : io::pread(file.get(), buffer, begin);
}

enum class comparison : std::uint8_t { strong, weak };

/// Source: RFC 9110, 8.8.3.2.
bool are_same(std::string_view first, std::string_view second, comparison strength) noexcept {
  const bool one_is_weak = first.starts_with("W/");
  const bool other_is_weak = second.starts_with("W/");
  if (strength == comparison::strong && (one_is_weak || other_is_weak)) return false;
  return first.substr(one_is_weak ? 2 : 0) == second.substr(other_is_weak ? 2 : 0);
}

bool lists(std::string_view tags, std::string_view tag, comparison strength) noexcept {
  while (!tags.empty()) {
    const std::string_view entry = trimmed(split_before(tags, ','));
    if (entry == "*" || are_same(entry, tag, strength)) return true;
  }
  return false;
}

/// Treats a field on several lines as one list. Source: RFC 9110, 5.3.
/// Returns: std::nullopt if there is no such field; otherwise whether it lists the tag.
std::optional<bool> any_lists(const request& request, std::string_view name, std::string_view tag,
                              comparison strength) noexcept {
  std::optional<bool> result;
  for (const field entry : request.headers()) {
    if (!equal_but_for_case(entry.name, name)) continue;
    result = result.value_or(false) || lists(entry.value, tag, strength);
  }
  return result;
}

std::optional<std::time_t> date_in(const request& request, std::string_view name) noexcept {
  return time_of(only_value(request.headers(), name).value_or(""));
}

/// Whether the client wants another state of the file than it has.
bool is_another(const request& request, const file_metadata& metadata) noexcept {
  if (const auto match = any_lists(request, "if-match", metadata.tag(), comparison::strong))
    return !*match;
  const std::optional<std::time_t> date = date_in(request, "if-unmodified-since");
  return date.has_value() && metadata.change_time > *date;
}

/// Whether the client has the file as it is.
bool is_known(const request& request, const file_metadata& metadata) noexcept {
  if (const auto match = any_lists(request, "if-none-match", metadata.tag(), comparison::weak))
    return *match;
  const std::optional<std::time_t> date = date_in(request, "if-modified-since");
  return date.has_value() && metadata.change_time <= *date;
}

struct part {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
};

/// Whether the date is that of this very state: within its second the file may have changed again.
/// Source: RFC 9110, 8.8.2.2.
bool is_date_of(std::string_view text, const file_metadata& metadata) noexcept {
  return time_of(text) == metadata.change_time && metadata.is_settled();
}

/// Whether the file is in the state for which the client wants a range. Source: RFC 9110, 13.1.5.
bool range_applies(const request& request, const file_metadata& metadata) noexcept {
  const std::string_view only_if = request.header("if-range");
  return only_if.empty() || are_same(only_if, metadata.tag(), comparison::strong) ||
         is_date_of(only_if, metadata);
}

/// "first-last": the bytes from `first` on, up to and including `last`. Without `first` the last
/// `last` bytes of the file.
struct byte_range {
  std::optional<std::uint64_t> first;
  std::optional<std::uint64_t> last;
};

/// Returns: std::nullopt if `text` is not one range. Source: RFC 9110, 14.1.2.
std::optional<byte_range> read_range(std::string_view text) noexcept {
  const std::string_view first = trimmed(split_before(text, '-'));
  const std::string_view last = trimmed(text);
  const byte_range result{number_of(first), number_of(last)};
  if (result.first.has_value() == first.empty() || result.last.has_value() == last.empty()) {
    return std::nullopt;
  }
  if (!result.first.has_value())
    return result.last.has_value() ? std::optional(result) : std::nullopt;
  if (result.last.value_or(*result.first) < *result.first) return std::nullopt;
  return result;
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
std::optional<part> part_asked_for(const request& request, const file_metadata& metadata) {
  constexpr std::string_view unit = "bytes=";
  const std::string_view text = request.header("range");
  if (request.method() != "GET" || !text.starts_with(unit)) return std::nullopt;
  if (!range_applies(request, metadata)) return std::nullopt;
  const std::optional<byte_range> range = read_range(text.substr(unit.size()));
  if (!range.has_value()) return std::nullopt;
  const part result = part_of(*range, metadata.size);
  if (result.size == 0) throw standard_error(416);
  return result;
}

/// Throws: std::runtime_error if the file is shorter than it was.
void send_part(const fd& file, const part& extent, response_writer& writer) {
  const auto buffer_size =
      static_cast<std::size_t>(std::min<std::uint64_t>(extent.size, largest_piece));
  std::unique_ptr<std::byte[]> buffer;
  for (std::uint64_t bytes_sent = 0; bytes_sent < extent.size;) {
    const auto begin = static_cast<off_t>(extent.begin + bytes_sent);
    // Less is quicker in one packet with the head. What is not in memory a read brings there.
    if (extent.size - bytes_sent >= least_for_kernel) {
      bytes_sent += writer.send_part(file.get(), begin, extent.size - bytes_sent);
      if (bytes_sent == extent.size) return;
    }
    if (buffer == nullptr) buffer = std::make_unique_for_overwrite<std::byte[]>(buffer_size);
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(extent.size - bytes_sent, buffer_size));
    const std::size_t size =
        read_at(file, {buffer.get(), count}, static_cast<off_t>(extent.begin + bytes_sent));
    if (size == 0)
      throw std::runtime_error("send_file(): the file was truncated while it was being sent");
    writer.write(std::span(buffer.get(), size));
    bytes_sent += size;
  }
}

bool is_directory(const std::string& path) {
  struct statx attributes{};
  std::error_code absent;
  io::statx(AT_FDCWD, path.c_str(), 0, STATX_TYPE, attributes, absent);
  return !absent && S_ISDIR(attributes.stx_mode);
}

/// Returns: a target with a slash behind its path, relative to the host that was asked.
std::string with_slash(std::string_view target) {
  const std::optional<http::target> url_target = parse_target(target);
  std::string path(url_target.has_value() ? url_target->path : target);
  path += '/';
  if (path.starts_with("//")) path.insert(0, "/.");  // or it would name a host
  const bool has_query = url_target.has_value() && !url_target->query.empty();
  return has_query ? path + '?' + std::string(url_target->query) : path;
}

bool leads_out(std::string_view path) noexcept {
  while (!path.empty()) {
    if (split_before(path, '/') == "..") return true;
  }
  return false;
}

}  // namespace

void send_file(request& request, response& answer, const std::string& path) {
  const bool to_head = request.method() == "HEAD";
  if (!to_head && request.method() != "GET") {
    answer.status(405).header("Allow", "GET, HEAD");
    return;
  }
  // An answer that goes on needs its file, whoever asks for others meanwhile.
  const std::shared_ptr<const cached_file> entry = cached_file::at(path);
  const fd& file = entry->file;
  const file_metadata& metadata = entry->metadata;
  answer.header("ETag", metadata.tag());
  // A file of the future would be newer than its own answer.
  if (metadata.change_time <= std::time(nullptr)) answer.header("Last-Modified", metadata.date);
  answer.header("Accept-Ranges", "bytes");
  if (is_another(request, metadata)) {
    answer.status(412);
    return;
  }
  if (is_known(request, metadata)) {
    answer.status(304);
    return;
  }
  std::optional<part> range;
  try {
    range = part_asked_for(request, metadata);
  } catch (const status_error& error) {
    answer.status(error.status())
        .header("Content-Range", "bytes */" + std::to_string(metadata.size));
    return;
  }
  if (range.has_value()) {
    answer.status(206).header("Content-Range", "bytes " + std::to_string(range->begin) + '-' +
                                                   std::to_string(range->begin + range->size - 1) +
                                                   '/' + std::to_string(metadata.size));
  }
  const part extent = range.value_or(part{0, metadata.size});
  if (!answer.headers().find("content-type").has_value()) {
    answer.header("Content-Type", kind_of(path));
  }
  answer.header("Content-Length", std::to_string(extent.size));
  if (!to_head) send_part(file, extent, answer.connection_.answer());
}

handler files(std::string directory) {
  return [directory = std::move(directory)](request& request, response& answer) {
    const std::string_view path = request.parameter("path");
    if (leads_out(path)) throw standard_error(404);
    std::string whole = directory + '/' + std::string(path);
    const bool with_index = whole.ends_with('/');
    if (with_index) whole += "index.html";
    try {
      send_file(request, answer, whole);
    } catch (const status_error& error) {
      if (error.status() != 404 || with_index || !is_directory(whole)) throw;
      answer.status(308).header("Location", with_slash(request.target()));
    }
  };
}

}}}  // namespace motet::MOTET_ABI::http
