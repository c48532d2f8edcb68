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

  void read(void* destination, std::size_t size, std::size_t offset) const {
    auto* bytes = static_cast<char*>(destination);
    while (size > 0) {
      const ssize_t count = ::pread(fd_, bytes, size, static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw std::runtime_error(path_ + ": " + std::strerror(errno));
      if (count == 0) throw std::runtime_error(path_ + ": the trace is truncated");
      bytes += count;
      offset += static_cast<std::size_t>(count);
      size -= static_cast<std::size_t>(count);
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
void drop_overwritten(ring& target, std::uint64_t first, std::uint64_t total,
                      std::uint64_t records) {
  const std::uint64_t whole = total < records ? 0 : total - records + 1;
  if (whole <= first) return;
  const std::size_t loss = std::min<std::uint64_t>(whole - first, target.size());
  target.words.erase(target.words.begin(),
                     target.words.begin() + static_cast<std::ptrdiff_t>(2 * loss));
  target.complete = false;
}

ring read_ring(const file& source, const format::head& head, std::size_t index) {
  const std::size_t offset = head.rings_at + index * head.ring_size;
  format::ring_head ring_header{};
  source.read(static_cast<void*>(&ring_header), sizeof ring_header, offset);
  ring result;
  result.thread = ring_header.thread;
  result.fibers = ring_header.fibers;
  result.ns_in_tick = 1e9 / static_cast<double>(head.ticks_in_second);
  const std::uint64_t total = ring_header.record_count;
  // The record that a killed process was writing is the oldest in the ring.
  const std::uint64_t oldest = total < head.records ? 0 : total - head.records + 1;
  const std::uint64_t first = std::max(oldest, ring_header.first_whole.load());
  if (first > total) source.refuse();
  result.complete = first == 0;
  const std::size_t count = total - first;
  const std::size_t begin = first & (head.records - 1);
  const std::size_t until_end = std::min<std::size_t>(count, head.records - begin);
  constexpr std::size_t size = sizeof(format::record);
  result.words.resize(2 * count);
  const std::size_t records_at = offset + sizeof(format::ring_head);
  source.read(result.words.data(), until_end * size, records_at + begin * size);
  source.read(result.words.data() + 2 * until_end, (count - until_end) * size, records_at);
  source.read(static_cast<void*>(&ring_header), sizeof ring_header, offset);
  drop_overwritten(result, first, ring_header.record_count, head.records);
  return result;
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
  for (std::size_t offset = sizeof length; offset + sizeof length <= texts.size();) {
    std::memcpy(&length, texts.data() + offset, sizeof length);
    offset += sizeof length;
    const std::size_t size = std::min<std::size_t>(length, texts.size() - offset);
    make_printable({texts.data() + offset, size});
    offset += (size + 1) / 2 * 2;
  }
}

}  // namespace

trace_reader::trace_reader(const std::string& path) {
  const file source(path);
  format::head head{};
  source.read(static_cast<void*>(&head), sizeof head, 0);
  if (!fits(head)) source.refuse();
  process_ = head.process;
  began_at_ = head.began_at;
  texts_.resize(head.texts_used);
  source.read(texts_.data(), texts_.size(), head.texts_at);
  make_all_printable(texts_);
  for (std::size_t i = 0; i < head.rings_used; ++i) rings_.push_back(read_ring(source, head, i));
}

std::size_t trace_reader::records() const noexcept {
  std::size_t total = 0;
  for (const ring& entry : rings_) total += entry.size();
  return total;
}

std::string_view trace_reader::text(std::uint32_t offset) const noexcept {
  std::uint16_t length = 0;
  if (offset == 0 || offset + sizeof length > texts_.size()) return {};
  std::memcpy(&length, texts_.data() + offset, sizeof length);
  if (length > format::longest_text || offset + sizeof length + length > texts_.size()) return {};
  return std::string_view(texts_).substr(offset + sizeof length, length);
}

}  // namespace motet_trace
