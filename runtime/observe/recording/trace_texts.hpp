// SPDX-License-Identifier: MIT
// The table of texts in a trace file. It contains each text once, and never shrinks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <motet/base/call_site.hpp>
#include <mutex>
#include <string_view>

#include "observe/recording/trace_format.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class trace_texts {
 public:
  /// Writes to `head` how much of the table is used.
  void begin(trace::head& head) noexcept;

  /// The number of names is unbounded, so names leave some of the table to literals.
  enum class kind : bool { literal, name };

  /// Returns: the offset of the text, or of its beginning; 0 if the table is full. Any thread.
  std::uint32_t offset_of(std::string_view text, kind form = kind::literal) noexcept;
  /// The same for "file:line"; if it is too long, its end is kept.
  std::uint32_t offset_of(call_site site) noexcept;

 private:
  static constexpr std::size_t slots = std::size_t{1} << 15;

  char* at(std::uint32_t offset) const noexcept {
    return reinterpret_cast<char*>(head_) + head_->texts_at + offset;
  }
  bool is(std::uint32_t offset, std::string_view text) const noexcept;
  std::uint32_t add(std::string_view text, kind form) noexcept;

  trace::head* head_ = nullptr;
  std::mutex lock_;
  std::array<std::uint32_t, slots> offsets_{};  // by their hashes; 0: free
  std::size_t texts_ = 0;
};

}}}  // namespace motet::MOTET_ABI::detail
