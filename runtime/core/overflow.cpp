// SPDX-License-Identifier: MIT
// See core/overflow.hpp. The handler runs in the middle of anything: it calls nothing but write(2)
// and sigaction(2). Source: signal-safety(7).
#include "core/overflow.hpp"

#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <cstdint>

#include "base/disabled.hpp"
#include "base/faults.hpp"
#include "base/printable.hpp"
#include "base/signal_safe_text.hpp"
#include "core/thread_state.hpp"
#include "platform/spare_mappings.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

struct sigaction previous;
constinit spare_mappings spares;

bool overflows(const control_block& fiber, const void* address) noexcept {
  const auto* position = static_cast<const std::byte*>(address);
  const std::byte* bottom = fiber.runs_on.bottom;
  return bottom != nullptr && position < bottom && position >= bottom - stack_pool::guard;
}

void report(const control_block& fiber) noexcept {
  line<512> report_line;
  report_line << "motet: fiber " << fiber.id;
  if (fiber.named) report_line << " \"" << quotable(name_of(fiber)) << "\"";
  report_line << ", spun at " << fiber.site.file << ":" << std::uint64_t{fiber.site.line}
              << ", has overflowed its stack of " << std::uint64_t{fiber.runs_on.size()}
              << " bytes; spin_options.stack_size gives it more\n";
  report_line.write();
}

void call_previous(int signal, siginfo_t* info, void* context) noexcept {
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
    ::sigaction(signal, &previous, nullptr);  // what has faulted will fault again
  } else {
    previous.sa_handler(signal);
  }
}

void on_fault(int signal, siginfo_t* info, void* context) noexcept {
  thread_state* thread = self();
  if (thread != nullptr && overflows(thread->running(), info->si_addr)) report(thread->running());
  call_previous(signal, info, context);
}

/// Source: getauxval(3): what the processor's state alone may take.
std::size_t stack_size() noexcept {
  return ::getauxval(AT_MINSIGSTKSZ) + std::size_t{32} * 1024;
}

void* map_stack() noexcept {
  if (void* spare = spares.take()) return spare;
  void* memory = faults::call("mmap", ::mmap, nullptr, stack_size(), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void unmap_stack(void* spare) noexcept {
  if (!spares.put(spare)) ::munmap(spare, stack_size());
}

bool install_once() noexcept {
  if (sanitizer::enabled || disabled("overflow_report")) return false;
  struct sigaction action{};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  return ::sigaction(SIGSEGV, &action, &previous) == 0;
}

}  // namespace

alternate_stack::alternate_stack() noexcept {
  static const bool installed = install_once();
  stack_t present{};
  if (!installed || ::sigaltstack(nullptr, &present) != 0) return;
  if ((present.ss_flags & SS_DISABLE) == 0) return;
  void* memory = map_stack();
  if (memory == nullptr) return;
  const stack_t own_stack{memory, 0, stack_size()};
  if (::sigaltstack(&own_stack, nullptr) == 0) {
    memory_ = memory;
  } else {
    unmap_stack(memory);
  }
}

alternate_stack::~alternate_stack() {
  if (memory_ == nullptr) return;
  stack_t present{};
  ::sigaltstack(nullptr, &present);
  if (present.ss_sp == memory_) {
    const stack_t no_stack{nullptr, SS_DISABLE, 0};
    ::sigaltstack(&no_stack, nullptr);
  }
  unmap_stack(memory_);
}

}}}  // namespace motet::MOTET_ABI::detail
