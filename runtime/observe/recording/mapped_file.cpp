// SPDX-License-Identifier: MIT
// See observe/recording/mapped_file.hpp. Source: mmap(2), SIGBUS; setrlimit(2), RLIMIT_FSIZE.
#include "observe/recording/mapped_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <motet/base/errors.hpp>

#include "base/saved_errno.hpp"
#include "base/sigpipe.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// One mapping. Never freed: the handler may come at any time.
struct mapped_range {
  std::uintptr_t begin;
  std::size_t size;
  mapped_range* next;
};

constinit std::atomic<mapped_range*> ranges{nullptr};
constinit struct sigaction previous{};

bool is_mapped(std::uintptr_t address) noexcept {
  for (const mapped_range* range = ranges.load(); range != nullptr; range = range->next) {
    if (address - range->begin < range->size) return true;
  }
  return false;
}

/// Called in a signal handler.
/// Returns: whether the access can be made again.
bool replace_page(void* fault_address) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(fault_address);
  if (!is_mapped(address)) return false;
  const auto size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  void* page = reinterpret_cast<void*>(address & ~(size - 1));
  return ::mmap(page, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                0) != MAP_FAILED;
}

void on_bus_error(int signal, siginfo_t* info, void* context) noexcept {
  const saved_errno errno_guard(errno);
  if (info->si_code == BUS_ADRERR && replace_page(info->si_addr)) return;
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
    ::sigaction(signal, &previous, nullptr);  // a fault happens again
    if (info->si_code <= 0) ::raise(signal);  // a sent signal does not
  } else {
    previous.sa_handler(signal);
  }
}

bool install_once() noexcept {
  struct sigaction action{};
  action.sa_sigaction = &on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  return ::sigaction(SIGBUS, &action, &previous) == 0;
}

void reserve_on_disk(int fd, std::size_t offset, std::size_t size) {
  const held_signal<SIGXFSZ> guard;
  int error = EINTR;
  while (error == EINTR)
    error = ::posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(size));
  if (error != 0) throw_errno(error, "posix_fallocate");
}

}  // namespace

void* map_of_file(int fd, std::size_t offset, std::size_t size) {
  [[maybe_unused]] static const bool installed = install_once();
  auto range = std::make_unique<mapped_range>();
  reserve_on_disk(fd, offset, size);
  void* mapping =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (mapping == MAP_FAILED) throw_errno(errno, "mmap");
  *range = {reinterpret_cast<std::uintptr_t>(mapping), size, ranges.load()};
  while (!ranges.compare_exchange_weak(range->next, range.get())) {
  }
  static_cast<void>(range.release());
  return mapping;
}

}}}  // namespace motet::MOTET_ABI::detail
