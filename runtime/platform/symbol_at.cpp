// SPDX-License-Identifier: MIT
// See platform/symbol_at.hpp.
// Source: _dl_find_object in the GNU C Library's manual, "Dynamic Linker Introspection", safe in a
// signal handler; the ELF specification for the tables; "ELF: GNU hash" of its supplements.
#include "platform/symbol_at.hpp"

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
  exports found;
  if (object.l_ld == nullptr) return found;
  for (const ElfW(Dyn)* each = object.l_ld; each->d_tag != DT_NULL; ++each) {
    const std::uintptr_t value = each->d_un.d_ptr;
    if (each->d_tag == DT_SYMTAB) found.symbols = at<ElfW(Sym)>(object.l_addr, value);
    if (each->d_tag == DT_STRTAB) found.names = at<char>(object.l_addr, value);
    if (each->d_tag == DT_GNU_HASH) found.gnu_hash = at<std::uint32_t>(object.l_addr, value);
    if (each->d_tag == DT_HASH) found.hash = at<std::uint32_t>(object.l_addr, value);
  }
  return found;
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

std::span<const ElfW(Sym)> symbols_of(const exports& of) noexcept {
  if (of.symbols == nullptr || of.names == nullptr) return {};
  if (of.gnu_hash != nullptr) return {of.symbols, count_by_gnu_hash(of.gnu_hash)};
  return {of.symbols, of.hash == nullptr ? 0 : of.hash[1]};
}

bool contains(const ElfW(Sym) & one, std::uintptr_t offset) noexcept {
  const auto type = one.st_info & 0xf;
  if (one.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_NOTYPE)) return false;
  return offset == one.st_value || (offset > one.st_value && offset - one.st_value < one.st_size);
}

}  // namespace

symbol symbol_at(const void* address) noexcept {
  dl_find_object found{};
  if (::_dl_find_object(const_cast<void*>(address), &found) != 0) return {};
  const link_map& object = *found.dlfo_link_map;
  symbol result;
  result.file = *object.l_name != '\0' ? object.l_name : program_invocation_name;
  result.offset = reinterpret_cast<std::uintptr_t>(address) - object.l_addr;
  const exports tables = exports_of(object);
  for (const ElfW(Sym) & each : symbols_of(tables)) {
    if (!contains(each, result.offset)) continue;
    result.name = tables.names + each.st_name;
    result.offset -= each.st_value;
    break;
  }
  return result;
}

}}}  // namespace motet::MOTET_ABI::detail
