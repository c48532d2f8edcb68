// SPDX-License-Identifier: MIT
// The calls by which the library's threads synchronize, as steps of the explorer. The program is
// linked with --wrap, so that the library's calls come here.
#include <dirent.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

#include "explorer/world.hpp"

using explorer::world;

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl50-cpp): the linker's names; syscall(2)
extern "C" {

int __real_pthread_mutex_lock(pthread_mutex_t* mutex) noexcept;
int __real_pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept;
int __real_pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept;
DIR* __real_opendir(const char* path);
int __real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                          void* argument) noexcept;
int __real_pthread_detach(pthread_t thread) noexcept;
int __real_pthread_join(pthread_t thread, void** result);
int __real_close(int descriptor);
pid_t __real_gettid() noexcept;
int __real_sched_yield() noexcept;
int __real_nanosleep(const timespec* span, timespec* rest);
long __real_syscall(long number, ...) noexcept;
ssize_t __real_write(int descriptor, const void* data, std::size_t size);

int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  world* const all = world::current();
  if (all == nullptr) return __real_pthread_mutex_lock(mutex);
  all->lock(mutex);
  return 0;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  world* const all = world::current();
  if (all == nullptr) return __real_pthread_mutex_trylock(mutex);
  return all->try_lock(mutex) ? 0 : EBUSY;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  world* const all = world::current();
  if (all == nullptr) return __real_pthread_mutex_unlock(mutex);
  all->unlock(mutex);
  return 0;
}

/// The library lists the process's threads in /proc, where a model's threads are not: the list
/// cannot be opened.
DIR* __wrap_opendir(const char* path) {
  return world::current() == nullptr ? __real_opendir(path) : nullptr;
}

/// The thread has the number that the explorer gave it.
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                          void* argument) noexcept {
  world* const all = world::current();
  if (all == nullptr) return __real_pthread_create(thread, attributes, body, argument);
  *thread = all->add_thread([body, argument] { body(argument); });
  return 0;
}

int __wrap_pthread_detach(pthread_t thread) noexcept {
  world* const all = world::current();
  if (all == nullptr) return __real_pthread_detach(thread);
  all->detach(thread);
  return 0;
}

/// `result` is not set: the library asks for none.
int __wrap_pthread_join(pthread_t thread, void** result) {
  world* const all = world::current();
  if (all == nullptr) return __real_pthread_join(thread, result);
  all->join(thread);
  return 0;
}

int __wrap_close(int descriptor) {
  if (world* const all = world::current()) all->note_close(descriptor);
  return __real_close(descriptor);
}

/// The model's main thread is the process's.
pid_t __wrap_gettid() noexcept {
  const world* const all = world::current();
  return __real_gettid() + (all == nullptr ? 0 : static_cast<pid_t>(all->thread_number()));
}

int __wrap_sched_yield() noexcept {
  world* const all = world::current();
  if (all == nullptr) return __real_sched_yield();
  all->pause();
  return 0;
}

int __wrap_nanosleep(const timespec* span, timespec* rest) {
  world* const all = world::current();
  if (all == nullptr) return __real_nanosleep(span, rest);
  all->pause();
  return 0;
}

ssize_t __wrap_write(int descriptor, const void* data, std::size_t size) {
  if (world* const all = world::current()) all->note_event(descriptor);
  return __real_write(descriptor, data, size);
}

/// A futex's time limit is not reached.
long __wrap_syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  world* const all = world::current();
  if (all == nullptr || number != SYS_futex) {
    return __real_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3],
                          arguments[4], arguments[5]);
  }
  auto* const word = reinterpret_cast<std::uint32_t*>(arguments[0]);
  if ((arguments[1] & FUTEX_CMD_MASK) == FUTEX_WAKE) {
    all->futex_wake(word);
  } else {
    all->futex_wait({word, sizeof *word}, static_cast<std::uint32_t>(arguments[2]));
  }
  return 0;
}
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl50-cpp)
