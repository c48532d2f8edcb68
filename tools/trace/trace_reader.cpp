// SPDX-License-Identifier: MIT
// See trace_reader.hpp.
#include "trace_reader.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <motet/detail/base/utf8.hpp>
#include <span>
#include <stdexcept>

namespace motet_trace {

namespace {

constexpr std::size_t most_records = std::size_t{1} << 24;
constexpr std::size_t most_rings = 1 << 16;
constexpr std::size_t most_records_in_all = std::size_t{1} << 28;

class file {
 public:
  explicit file(const std::string& path)
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) throw std::runtime_error(path + ": " + std::strerror(errno));
  }
  file(const file&) = delete;
  file& operator=(const file&) = delete;
  ~file() { ::close(fd_); }

  void read(void* to, std::size_t size, std::size_t offset) const {
    auto* bytes = static_cast<char*>(to);
    while (size > 0) {
      const ssize_t found = ::pread(fd_, bytes, size, static_cast<off_t>(offset));
      if (found < 0 && errno == EINTR) continue;
      if (found < 0) throw std::runtime_error(path_ + ": " + std::strerror(errno));
      if (found == 0) throw std::runtime_error(path_ + ": the trace is truncated");
      bytes += found;
      offset += static_cast<std::size_t>(found);
      size -= static_cast<std::size_t>(found);
    }
  }
  [[noreturn]] void refuse() const { throw std::runtime_error(path_ + ": not a trace of motet"); }

 private:
  const std::string path_;
  const int fd_;
};

bool fits(const format::head& head) {
  return head.sign == format::magic && head.records >= 2 && head.records <= most_records &&
         (head.records & (head.records - 1)) == 0 && head.ticks_in_second > 0 &&
         head.ring_size == sizeof(format::ring_head) + head.records * sizeof(format::record) &&
         head.texts_size <= format::texts_size && head.texts_used <= head.texts_size &&
         head.rings_used <= most_rings && head.rings_used * head.records <= most_records_in_all;
}

/// What the thread has written while its ring was read, stands where the oldest records were.
void drop_overwritten(ring& found, std::uint64_t first, std::uint64_t since,
                      std::uint64_t records) {
  const std::uint64_t whole = since < records ? 0 : since - records + 1;
  if (whole <= first) return;
  const std::size_t lost = std::min<std::uint64_t>(whole - first, found.size());
  found.words.erase(found.words.begin(),
                    found.words.begin() + static_cast<std::ptrdiff_t>(2 * lost));
  found.complete = false;
}

ring read_ring(const file& from, const format::head& head, std::size_t which) {
  const std::size_t at = head.rings_at + which * head.ring_size;
  format::ring_head known{};
  from.read(static_cast<void*>(&known), sizeof known, at);
  ring found;
  found.thread = known.thread;
  found.fibers = known.fibers;
  found.ns_in_tick = 1e9 / static_cast<double>(head.ticks_in_second);
  const std::uint64_t written = known.record_count;
  // The record that a killed process was writing is the oldest in the ring.
  const std::uint64_t kept = written < head.records ? 0 : written - head.records + 1;
  const std::uint64_t first = std::max(kept, known.first_whole.load());
  if (first > written) from.refuse();
  found.complete = first == 0;
  const std::size_t count = written - first;
  const std::size_t begin = first & (head.records - 1);
  const std::size_t until_end = std::min<std::size_t>(count, head.records - begin);
  constexpr std::size_t size = sizeof(format::record);
  found.words.resize(2 * count);
  const std::size_t records_at = at + sizeof(format::ring_head);
  from.read(found.words.data(), until_end * size, records_at + begin * size);
  from.read(found.words.data() + 2 * until_end, (count - until_end) * size, records_at);
  from.read(static_cast<void*>(&known), sizeof known, at);
  drop_overwritten(found, first, known.record_count, head.records);
  return found;
}

/// Returns: the number of bytes of the first displayable character; 0 if there is none.
std::size_t character_at(std::string_view text) noexcept {
  const std::size_t length = motet::detail::length_of_character(text);
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const bool is_control = length == 1 ? byte(0) < 0x20 || byte(0) == 0x7f
                                      : length == 2 && byte(0) == 0xc2 && byte(1) < 0xa0;
  return is_control ? 0 : length;
}

/// Names come from anywhere, and may be cut in the middle of a character.
void make_printable(std::span<char> text) noexcept {
  while (!text.empty()) {
    const std::size_t length = character_at(std::string_view(text.data(), text.size()));
    if (length == 0) text[0] = '?';
    text = text.subspan(std::max<std::size_t>(length, 1));
  }
}

void make_all_printable(std::string& texts) {
  std::uint16_t length = 0;
  for (std::size_t at = sizeof length; at + sizeof length <= texts.size();) {
    std::memcpy(&length, texts.data() + at, sizeof length);
    at += sizeof length;
    const std::size_t size = std::min<std::size_t>(length, texts.size() - at);
    make_printable({texts.data() + at, size});
    at += (size + 1) / 2 * 2;
  }
}

}  // namespace

trace_reader::trace_reader(const std::string& path) {
  const file from(path);
  format::head head{};
  from.read(static_cast<void*>(&head), sizeof head, 0);
  if (!fits(head)) from.refuse();
  process_ = head.process;
  began_at_ = head.began_at;
  texts_.resize(head.texts_used);
  from.read(texts_.data(), texts_.size(), head.texts_at);
  make_all_printable(texts_);
  for (std::size_t i = 0; i < head.rings_used; ++i) rings_.push_back(read_ring(from, head, i));
}

std::size_t trace_reader::records() const noexcept {
  std::size_t all = 0;
  for (const ring& each : rings_) all += each.size();
  return all;
}

std::string_view trace_reader::text(std::uint32_t place) const noexcept {
  std::uint16_t length = 0;
  if (place == 0 || place + sizeof length > texts_.size()) return {};
  std::memcpy(&length, texts_.data() + place, sizeof length);
  if (length > format::longest_text || place + sizeof length + length > texts_.size()) return {};
  return std::string_view(texts_).substr(place + sizeof length, length);
}

}  // namespace motet_trace
