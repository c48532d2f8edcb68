// SPDX-License-Identifier: MIT
// See platform/frames/symbol_at.hpp.
// Source: _dl_find_object in the GNU C Library's manual, "Dynamic Linker Introspection", safe in a
// signal handler; the ELF specification for the tables; "ELF: GNU hash" of its supplements.
#include "platform/frames/symbol_at.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <span>

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// The tables of one object that say what it exports.
struct exports {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const std::uint32_t* gnu_hash = nullptr;
  const std::uint32_t* hash = nullptr;
};

/// The loader writes addresses into the dynamic section, but not into the kernel's own object.
template <typename T>
const T* at(std::uintptr_t base, std::uintptr_t value) noexcept {
  return reinterpret_cast<const T*>(value < base ? base + value : value);
}

exports exports_of(const link_map& object) noexcept {
  exports result;
  if (object.l_ld == nullptr) return result;
  for (const ElfW(Dyn)* entry = object.l_ld; entry->d_tag != DT_NULL; ++entry) {
    const std::uintptr_t value = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) result.symbols = at<ElfW(Sym)>(object.l_addr, value);
    if (entry->d_tag == DT_STRTAB) result.names = at<char>(object.l_addr, value);
    if (entry->d_tag == DT_GNU_HASH) result.gnu_hash = at<std::uint32_t>(object.l_addr, value);
    if (entry->d_tag == DT_HASH) result.hash = at<std::uint32_t>(object.l_addr, value);
  }
  return result;
}

/// The table says of each bucket where its chain begins; the chain that begins last ends with the
/// last symbol.
std::size_t count_by_gnu_hash(const std::uint32_t* table) noexcept {
  const std::uint32_t buckets = table[0], first = table[1], words_of_filter = table[2];
  const std::uint32_t* bucket = table + 4 + words_of_filter * (sizeof(ElfW(Addr)) / 4);
  const std::uint32_t* chains = bucket + buckets;
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < buckets; ++i) last = std::max(last, bucket[i]);
  if (last < first) return first;
  while ((chains[last - first] & 1) == 0) ++last;
  return std::size_t{last} + 1;
}

std::span<const ElfW(Sym)> symbols_of(const exports& table) noexcept {
  if (table.symbols == nullptr || table.names == nullptr) return {};
  if (table.gnu_hash != nullptr) return {table.symbols, count_by_gnu_hash(table.gnu_hash)};
  return {table.symbols, table.hash == nullptr ? 0 : table.hash[1]};
}

bool contains(const ElfW(Sym) & entry, std::uintptr_t offset) noexcept {
  const auto type = entry.st_info & 0xf;
  if (entry.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_NOTYPE)) return false;
  return offset == entry.st_value ||
         (offset > entry.st_value && offset - entry.st_value < entry.st_size);
}

}  // namespace

symbol symbol_at(const void* address) noexcept {
  dl_find_object best{};
  if (::_dl_find_object(const_cast<void*>(address), &best) != 0) return {};
  const link_map& object = *best.dlfo_link_map;
  symbol result;
  result.file = *object.l_name != '\0' ? object.l_name : program_invocation_name;
  result.offset = reinterpret_cast<std::uintptr_t>(address) - object.l_addr;
  const exports tables = exports_of(object);
  for (const ElfW(Sym) & candidate : symbols_of(tables)) {
    if (!contains(candidate, result.offset)) continue;
    result.name = tables.names + candidate.st_name;
    result.offset -= candidate.st_value;
    break;
  }
  return result;
}

}}}  // namespace motet::MOTET_ABI::detail
