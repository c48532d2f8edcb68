// SPDX-License-Identifier: MIT
// See observe/recording/trace_texts.hpp.
#include "observe/recording/trace_texts.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr std::size_t length_size = 2;

}  // namespace

void trace_texts::begin(trace::head& head) noexcept {
  head_ = &head;
  head_->texts_used = length_size;  // behind the unknown text
}

bool trace_texts::is(std::uint32_t offset, std::string_view text) const noexcept {
  std::uint16_t length = 0;
  std::memcpy(&length, at(offset), length_size);
  return text == std::string_view(at(offset) + length_size, length);
}

std::uint32_t trace_texts::add(std::string_view text, kind form) noexcept {
  const std::size_t part = form == kind::name ? 3 : 4;  // of four
  const std::uint64_t old_size = head_->texts_used.load(std::memory_order_relaxed);
  const std::size_t size = (length_size + text.size() + 1) / 2 * 2;
  if (old_size + size > head_->texts_size / 4 * part || texts_ >= slots / 8 * part) return 0;
  const auto length = static_cast<std::uint16_t>(text.size());
  const auto offset = static_cast<std::uint32_t>(old_size);
  std::memcpy(at(offset), &length, length_size);
  std::memcpy(at(offset) + length_size, text.data(), text.size());
  head_->texts_used.store(old_size + size, std::memory_order_release);
  ++texts_;
  return offset;
}

std::uint32_t trace_texts::offset_of(std::string_view text, kind form) noexcept {
  text = text.substr(0, trace::longest_text);
  if (text.empty()) return 0;
  const std::lock_guard guard(lock_);
  std::size_t slot = std::hash<std::string_view>()(text) % slots;
  for (; offsets_[slot] != 0; slot = (slot + 1) % slots) {
    if (is(offsets_[slot], text)) return offsets_[slot];
  }
  return offsets_[slot] = add(text, form);
}

std::uint32_t trace_texts::offset_of(call_site site) noexcept {
  if (site.file == nullptr) return 0;
  constexpr std::size_t line_suffix_size = 16;
  std::string_view file = site.file;
  file = file.substr(file.size() - std::min(file.size(), trace::longest_text - line_suffix_size));
  std::array<char, trace::longest_text> text{};
  const int length = std::snprintf(text.data(), text.size(), "%.*s:%u",
                                   static_cast<int>(file.size()), file.data(), site.line);
  return offset_of(std::string_view(text.data(), static_cast<std::size_t>(length)));
}

}}}  // namespace motet::MOTET_ABI::detail
