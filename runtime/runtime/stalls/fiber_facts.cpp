// SPDX-License-Identifier: MIT
// See runtime/stalls/fiber_facts.hpp. Blocks and names are copied bit by bit, and the copies never
// destroyed.
#include "runtime/stalls/fiber_facts.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <motet/detail/core/cold_part.hpp>
#include <span>

#include "runtime/peek.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

template <typename T>
struct alignas(T) bits_of_one {
  std::array<std::byte, sizeof(T)> bits{};

  bool copied_from(const T* at) noexcept { return peek_bytes(at, bits) == bits.size(); }
  const T& seen() const noexcept { return *reinterpret_cast<const T*>(bits.data()); }
};

/// Reads the characters at the address that the string contains.
std::string name_at(const std::string* named) {
  constexpr std::size_t longest = 128;
  bits_of_one<std::string> copy;
  if (!copy.copied_from(named)) return {};
  std::array<std::byte, longest> text;
  const std::size_t size = std::min(copy.seen().size(), longest);
  const std::size_t got = peek_bytes(copy.seen().data(), std::span(text).first(size));
  return {reinterpret_cast<const char*>(text.data()), got};
}

}  // namespace

fiber_facts metadata_of(const control_block& fiber) {
  fiber_facts found;
  bits_of_one<control_block> copy;
  if (!copy.copied_from(&fiber)) return found;
  const control_block& seen = copy.seen();
  found.id = seen.id;
  found.site = seen.site;
  found.is_main = seen.is_main;
  found.runs_on = seen.runs_on;
  if (seen.named) {
    const void* cold = block_slab::beside(fiber, block_slab::cold_parts, block_slab::cold_room);
    found.name = name_at(&static_cast<const cold_part*>(cold)->name);
  }
  return found;
}

}}}  // namespace motet::MOTET_ABI::detail
