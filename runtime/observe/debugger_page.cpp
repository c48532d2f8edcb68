// SPDX-License-Identifier: MIT
// See observe/debugger_page.hpp.
#include "observe/debugger_page.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <motet/detail/core/cold_part.hpp>

#include "core/thread_registry.hpp"
#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The first number says how many follow; 0: no runtime has begun.
[[gnu::used,
  gnu::visibility(
      "default")]] constinit std::array<std::atomic<std::uint64_t>, 29> motet_debugger_page{};

namespace {

template <typename Whole, typename Part>
std::uint64_t offset_in(const Whole& whole, const Part& part) noexcept {
  return static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(&part) -
                                    reinterpret_cast<const std::byte*>(&whole));
}

/// The bytes of a name begin with its address and its length, or it has no offset.
std::uint64_t offset_of_name() noexcept {
#if defined(_GLIBCXX_RELEASE)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
  return offsetof(cold_part, name);
#pragma GCC diagnostic pop
#else
  return 0;
#endif
}

}  // namespace

void write_debugger_page(thread_state& thread) noexcept {
  auto& page = motet_debugger_page;
  if (page[0].load(std::memory_order_relaxed) != 0) return;
  const control_block& block = thread.main_fiber();
  const tagged_link<fibers_tag>& links = block;
  const wait_record wait("");
  const saved_context& registers = block.resume_context;
  std::size_t next = 1;
  for (const std::uint64_t word : {
           std::uint64_t{reinterpret_cast<std::uintptr_t>(&motet_thread_registry)},
           std::uint64_t{offsetof(thread_entry, thread)},
           std::uint64_t{offsetof(thread_entry, runtime)},
           std::uint64_t{offsetof(thread_entry, next)},
           offset_in(thread, *thread.progress().runner),
           offset_in(thread, thread.fibers()),
           std::uint64_t{sizeof block},
           offset_in(block, links),
           offset_in(block, block.id),
           offset_in(block, block.state),
           offset_in(block, block.wait),
           offset_in(block, block.named),
           offset_in(block, block.site.file),
           offset_in(block, block.site.line),
           offset_in(block, registers.stack_pointer),
           offset_in(block, registers.resume_at),
           offset_in(block, registers.frame),
           offset_in(block, registers.base),
           offset_in(wait, wait.description),
           offset_in(wait, wait.subject),
           offset_in(wait, wait.target),
           offset_in(wait, wait.kind),
           std::uint64_t{block_slab::size},
           std::uint64_t{block_slab::first},
           std::uint64_t{block_slab::blocks},
           std::uint64_t{block_slab::cold_size},
           offset_of_name(),
       })
    page[next++].store(word, std::memory_order_relaxed);
  page[0].store(next - 1, std::memory_order_release);
}

}}}  // namespace motet::MOTET_ABI::detail
