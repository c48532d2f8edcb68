// SPDX-License-Identifier: MIT
// See observe/stalls/fiber_facts.hpp. Blocks and names are copied bit by bit, and the copies never
// destroyed.
#include "observe/stalls/fiber_facts.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <motet/detail/core/cold_part.hpp>
#include <span>

#include "platform/frames/peek.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

template <typename T>
struct alignas(T) bits_of_one {
  std::array<std::byte, sizeof(T)> bits{};

  bool copied_from(const T* source) noexcept { return peek_bytes(source, bits) == bits.size(); }
  const T& seen() const noexcept { return *reinterpret_cast<const T*>(bits.data()); }
};

/// Reads the characters at the address that the string contains.
std::string name_at(const std::string* source) {
  constexpr std::size_t longest = 128;
  bits_of_one<std::string> copy;
  if (!copy.copied_from(source)) return {};
  std::array<std::byte, longest> text;
  const std::size_t size = std::min(copy.seen().size(), longest);
  const std::size_t length = peek_bytes(copy.seen().data(), std::span(text).first(size));
  return {reinterpret_cast<const char*>(text.data()), length};
}

}  // namespace

fiber_facts metadata_of(const control_block& fiber) {
  fiber_facts facts;
  bits_of_one<control_block> copy;
  if (!copy.copied_from(&fiber)) return facts;
  const control_block& block = copy.seen();
  facts.id = block.id;
  facts.site = block.site;
  facts.is_main = block.is_main;
  facts.runs_on = block.runs_on;
  if (block.named) {
    const void* cold = block_slab::beside(fiber, block_slab::cold_parts, block_slab::cold_size);
    facts.name = name_at(&static_cast<const cold_part*>(cold)->name);
  }
  return facts;
}

}}}  // namespace motet::MOTET_ABI::detail
