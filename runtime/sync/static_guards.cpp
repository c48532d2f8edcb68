// SPDX-License-Identifier: MIT
// A function-local static, and a std::call_once, are initialized by the first caller; the C++
// runtime blocks other callers' threads until then. If the first caller is a fiber that waits, that
// would block its own thread, for ever. So motet replaces the functions that compilers call for
// this: a fiber that finds another fiber in the initialization suspends. Everything else is left to
// the real functions.
// Source: Itanium C++ ABI, 3.3.3; pthread_once(3).
#include "sync/static_guards.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <motet/detail/core/internal_shield.hpp>
#include <motet/sync/event.hpp>
#include <mutex>
#include <new>
#include <utility>

#include "core/thread_state.hpp"

#if defined(MOTET_TSAN)
// ThreadSanitizer has functions of its own in the same place, which block.

namespace motet { inline namespace MOTET_ABI { namespace detail {

void static_guards::lock() noexcept {}

void static_guards::unlock() noexcept {}

}}}  // namespace motet::MOTET_ABI::detail

#else

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// An initialization that a fiber has begun. `flag` is the compiler's, or the program's, variable.
struct initialization {
  const void* flag;
  const control_block* owner;
  initialization* next = nullptr;
  std::size_t users = 1;  // the fiber, and those that wait
  event completion;
};

constinit std::mutex table;  // guards the list and the counts of users
constinit initialization* first = nullptr;

initialization** link_of(const void* flag) noexcept {
  initialization** link = &first;
  while (*link != nullptr && (*link)->flag != flag) link = &(*link)->next;
  return link;
}

void drop(initialization& entry) noexcept {
  {
    const std::lock_guard guard(table);
    if (--entry.users > 0) return;
  }
  delete &entry;
}

/// Without memory it is not noted: who finds it is blocked, as without motet.
void note_begin(const void* flag) noexcept {
  thread_state* thread = self();
  if (thread == nullptr) return;
  auto* record = new (std::nothrow) initialization{flag, &thread->running()};
  if (record == nullptr) return;
  const std::lock_guard guard(table);
  record->next = std::exchange(first, record);
}

void note_end(const void* flag) noexcept {
  initialization* record = nullptr;
  {
    const std::lock_guard guard(table);
    initialization** link = link_of(flag);
    record = *link;
    if (record == nullptr) return;
    *link = record->next;
  }
  record->completion.set();
  drop(*record);
}

/// Returns: another fiber's initialization. A fiber that re-enters its own has made a mistake,
///          which the real functions report.
initialization* used_by_another(const void* flag, const control_block& fiber) noexcept {
  const std::lock_guard guard(table);
  initialization* entry = *link_of(flag);
  if (entry == nullptr || entry->owner == &fiber) return nullptr;
  ++entry->users;
  return entry;
}

/// Whether this is the running fiber's own code, and not what its thread does in a switch or a
/// poll, which must not switch.
bool is_in_fiber(const thread_state& thread) noexcept {
  const fiber_state state = thread.running().state.load(std::memory_order_relaxed);
  return !thread.looks_aside && state == fiber_state::running;
}

/// Waits until no other fiber runs the initialization of `flag`. Nothing interrupts the wait,
/// because compilers may assume that these functions do not throw. During a switch or a poll, it
/// blocks the thread, as without motet.
void await_others(const void* flag) noexcept {
  thread_state* thread = self();
  if (thread == nullptr || !is_in_fiber(*thread)) return;
  while (initialization* rival = used_by_another(flag, thread->running())) {
    bool waited = true;
    try {
      const internal_shield shield;
      rival->completion.wait();
    } catch (...) {
      waited = false;  // as where no fiber may wait
    }
    drop(*rival);
    if (!waited) return;
  }
}

// Replacements for a static executable, in which the real functions are not linked.

using guard = std::uint64_t;

unsigned char* bytes_of(guard* flag) noexcept {
  return reinterpret_cast<unsigned char*>(flag);
}

/// The ABI wants the first byte to say whether the initialisation is over.
int acquire_alone(guard* flag) {
  unsigned char* const bytes = bytes_of(flag);
  while (__atomic_exchange_n(&bytes[1], 1, __ATOMIC_ACQUIRE) != 0) {
    if (__atomic_load_n(&bytes[0], __ATOMIC_ACQUIRE) != 0) return 0;
    ::sched_yield();
  }
  if (__atomic_load_n(&bytes[0], __ATOMIC_ACQUIRE) == 0) return 1;
  __atomic_store_n(&bytes[1], 0, __ATOMIC_RELEASE);
  return 0;
}
void abort_alone(guard* flag) {
  __atomic_store_n(&bytes_of(flag)[1], 0, __ATOMIC_RELEASE);
}
void release_alone(guard* flag) {
  __atomic_store_n(&bytes_of(flag)[0], 1, __ATOMIC_RELEASE);
  abort_alone(flag);
}

constexpr int once_begun = 1;
constexpr int once_over = 2;  // the same value as in glibc

int once_alone(pthread_once_t* flag, void (*initialize)()) {
  for (int value = 0; !__atomic_compare_exchange_n(flag, &value, once_begun, false,
                                                   __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
       value = 0) {
    if (value == once_over) return 0;
    ::sched_yield();
  }
  try {
    initialize();
  } catch (...) {
    __atomic_store_n(flag, 0, __ATOMIC_RELEASE);
    throw;
  }
  __atomic_store_n(flag, once_over, __ATOMIC_RELEASE);
  return 0;
}

template <typename Function>
Function* real(const char* name, Function* alone) noexcept {
  void* entry = ::dlsym(RTLD_NEXT, name);
  return entry == nullptr ? alone : reinterpret_cast<Function*>(entry);
}

/// The replaced functions; looked up before other threads run.
struct real_functions {
  int (*acquire)(guard*) = real("__cxa_guard_acquire", &acquire_alone);
  void (*release)(guard*) = real("__cxa_guard_release", &release_alone);
  void (*abort)(guard*) = real("__cxa_guard_abort", &abort_alone);
  int (*once)(pthread_once_t*, void (*)()) = real("pthread_once", &once_alone);
};

/// At namespace scope: a function-local static would need a guard.
std::atomic<bool> looked_up{false};
alignas(real_functions) unsigned char storage[sizeof(real_functions)];

[[gnu::constructor(101)]] const real_functions& real_ones() noexcept {
  if (!looked_up.load(std::memory_order_acquire)) {
    ::new (static_cast<void*>(storage)) real_functions;
    looked_up.store(true, std::memory_order_release);
  }
  return *std::launder(reinterpret_cast<const real_functions*>(storage));
}

/// std::call_once leaves here what pthread_once is to call.
class saved_callable {
 public:
  saved_callable() noexcept = default;
  saved_callable(const saved_callable&) = delete;
  saved_callable& operator=(const saved_callable&) = delete;
#if defined(__GLIBCXX__) && defined(_GLIBCXX_HAVE_TLS)
  ~saved_callable() {
    std::__once_callable = callable_;
    std::__once_call = call_;
  }

 private:
  void* callable_ = std::__once_callable;
  void (*call_)() = std::__once_call;
#else
  ~saved_callable() {}
#endif
};

struct ends_initialization {
  explicit ends_initialization(const void* record) noexcept : flag(record) { note_begin(flag); }
  ends_initialization(const ends_initialization&) = delete;
  ends_initialization& operator=(const ends_initialization&) = delete;
  ~ends_initialization() { note_end(flag); }
  const void* flag;
};

bool is_over(const pthread_once_t& flag) noexcept {
  return __atomic_load_n(&flag, __ATOMIC_ACQUIRE) == once_over;
}

}  // namespace

void static_guards::lock() noexcept {
  table.lock();
}

void static_guards::unlock() noexcept {
  table.unlock();
}

// Declared by their symbol names, because each standard library gives them another type. Weak, so
// that a sanitizer's own versions of these functions take precedence.

[[gnu::weak, gnu::visibility("default")]] int guard_acquire(guard* flag) asm("__cxa_guard_acquire");
[[gnu::weak, gnu::visibility("default")]] void guard_release(guard* flag) noexcept
    asm("__cxa_guard_release");
[[gnu::weak, gnu::visibility("default")]] void guard_abort(guard* flag) noexcept
    asm("__cxa_guard_abort");

int guard_acquire(guard* flag) {
  await_others(flag);
  const int is_mine = real_ones().acquire(flag);
  if (is_mine != 0) note_begin(flag);
  return is_mine;
}

void guard_release(guard* flag) noexcept {
  real_ones().release(flag);
  note_end(flag);
}

void guard_abort(guard* flag) noexcept {
  real_ones().abort(flag);
  note_end(flag);
}

}}}  // namespace motet::MOTET_ABI::detail

extern "C" [[gnu::weak, gnu::visibility("default")]] int pthread_once(pthread_once_t* flag,
                                                                      void (*initialize)()) {
  const auto& real = motet::detail::real_ones();
  if (motet::detail::is_over(*flag) || motet::detail::self() == nullptr)
    return real.once(flag, initialize);
  {
    const motet::detail::saved_callable handler_guard;
    motet::detail::await_others(flag);
  }
  const motet::detail::ends_initialization noted(flag);
  return real.once(flag, initialize);
}

#endif
