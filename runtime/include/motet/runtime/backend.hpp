// SPDX-License-Identifier: MIT
// The interface between the core and the kernel. A backend knows nothing of fibers; it takes
// operations and hands each back exactly once.
#pragma once

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <motet/base/clock.hpp>
#include <string_view>

namespace motet { inline namespace MOTET_ABI {

/// The kinds of operations. A new one needs a tag here and a row in base/verb_table.cpp.
enum class verb : std::uint8_t {
  read,
  write,
  readv,
  writev,
  pread,
  pwrite,
  preadv,
  pwritev,
  fsync,
  fallocate,
  ftruncate,
  openat,
  statx,
  renameat,
  unlinkat,
  mkdirat,
  getdents,
  splice,
  recv,
  send,
  recvmsg,
  sendmsg,
  accept,
  connect,
  wait_fd
};
inline constexpr std::size_t verbs = static_cast<std::size_t>(verb::wait_fd) + 1;

/// One request to the kernel, on the stack of the fiber that waits for it. The operation and its
/// buffer belong to the backend from submit() until submit() or poll() hands the operation back.
struct operation {
  verb kind{};
  /// The descriptor; for verbs with a path, the directory where the path begins, or AT_FDCWD.
  int fd = -1;
  /// Flags of recv(2), send(2), recvmsg(2), sendmsg(2), accept4(2), openat(2), statx(2),
  /// renameat2(2), unlinkat(2) and splice(2); RWF_APPEND of pwritev2(2); `data_only` for fsync; the
  /// poll(2) mask of wait_fd.
  int flags = 0;
  /// Flag of fsync: as fdatasync(2).
  static constexpr int data_only = 1;
  /// Bytes in `buffer`, vectors in `vectors`, the length of `address` (connect), the mode of
  /// openat, mkdirat and fallocate, the mask of statx, or the directory of `new_path`.
  std::uint32_t length = 0;
  union {
    void* buffer = nullptr;
    const iovec* vectors;
    sockaddr* address;
    msghdr* message;
    const char* path;
    std::uint64_t size;  // of fallocate, in bytes
  };
  union {
    /// For calls with an offset, and fallocate: the offset from the beginning of the file, in
    /// bytes. For ftruncate: the new size.
    std::uint64_t offset = 0;
    /// Where accept puts the length of the peer's address; may be null together with `address`.
    socklen_t* address_length;
    struct statx* status;  // statx's result
    const char* new_path;  // of renameat
    int target;            // the descriptor to which splice moves what is at `fd`
  };

  /// The result: bytes, a descriptor, a mask, or minus an errno value.
  std::int32_t result = 0;
  /// The result of a file operation that was not performed because it would block the thread: the
  /// submitter should perform it on a thread that may block.
  static constexpr std::int32_t would_block_thread = std::numeric_limits<std::int32_t>::min();

  /// The caller knows that the descriptor is in non-blocking mode.
  bool nonblocking = false;
  /// The caller expects a wait: its last call took all the data there was.
  bool expects_wait = false;
  /// The caller knows that `fd` is a file on a disk.
  bool on_disk = false;
  /// Other fibers can run meanwhile: the operation may wait for the next poll(), and enter the
  /// kernel together with theirs.
  bool may_batch = false;
  /// The stream that owns the descriptor, as a number that no other stream of the process has, or
  /// 0. A backend may keep a stream's state from one operation to the next; a stream has at most
  /// one operation in each direction at a time.
  std::uint64_t stream = 0;

  /// For the submitter; not used by the backend.
  void* owner = nullptr;

  /// For the backend alone: the link in its list of operations to hand back, and this one's state.
  operation* next = nullptr;
  std::uint8_t stage = 0;
  bool cancelling = false;
  std::uint8_t spurious_wakes = 0;  // wakes in a row after which the call would still have to wait
  alignas(16) std::byte scratch[96];
};

/// Completed operations, in the order of completion.
class completions {
 public:
  bool empty() const noexcept { return head_ == nullptr; }

  void push(operation& op) noexcept {
    op.next = nullptr;
    *(head_ == nullptr ? &head_ : &tail_->next) = &op;
    tail_ = &op;
  }

  /// Returns: the first one, or null.
  operation* pop() noexcept {
    operation* first = head_;
    if (first != nullptr) head_ = first->next;
    return first;
  }

  /// Appends all operations of `tail` to this list.
  void append(completions& tail) noexcept {
    if (tail.empty()) return;
    *(head_ == nullptr ? &head_ : &tail_->next) = tail.head_;
    tail_ = tail.tail_;
    tail.head_ = nullptr;
  }

 private:
  operation* head_ = nullptr;
  operation* tail_ = nullptr;
};

/// One thread's way to the kernel. Made, used and destroyed on that thread; unaware of fibers.
class backend {
 public:
  using time_point = clock::time_point;

  virtual ~backend() = default;

  /// Returns: "io_uring", "libev" or "sim", or the name that a program gave its own backend.
  virtual std::string_view name() const noexcept = 0;

  /// Returns: the present instant, read from the clock now.
  virtual time_point now() const noexcept = 0;

  /// Returns: whether now() is simulated: it stands still while fibers run, and jumps to the next
  ///          timer when nothing else can happen. Never changes.
  virtual bool virtual_time() const noexcept { return false; }

  /// Takes `op`, which goes to the kernel at the next poll at the latest.
  /// Returns: true if `op` has already completed: op.result is set, and `op` is the caller's again.
  virtual bool submit(operation& op) noexcept = 0;

  /// Asks that `op` end soon. poll() still hands `op` back, once: with -ECANCELED if none of it was
  /// performed, with its result if the cancellation came too late.
  virtual void cancel(operation& op) noexcept = 0;

  /// Drops the state kept for the stream of `fd`, which has no operations and will be closed next.
  virtual void forget([[maybe_unused]] int fd) noexcept {}

  /// Makes virtual time keep pace with real time instead of jumping, because the thread waits
  /// for other threads.
  virtual void keep_pace([[maybe_unused]] bool enable) noexcept {}

  /// Called in a forked child: gives up the kernel's resources without touching those of the parent
  /// process. Afterwards the backend is only destroyed.
  virtual void abandon() noexcept {}

  /// Appends the completed operations to `ended_operations`. Waits until one completes, until
  /// `deadline`, until the wake descriptor is written to, or until a signal. Does not wait when
  /// `deadline` is time_point::min(); waits without a limit at time_point::max().
  virtual void poll(time_point deadline, completions& ended_operations) = 0;

  /// For a thread that waits in a foreign event loop: submits what poll() would submit.
  /// Returns: a descriptor, always the same, that is readable when poll() has work; -1 if the
  ///          backend has none. Sets `due` to the time at which poll() must be called at the
  ///          latest; min() for immediately, max() for never.
  virtual int wait_descriptor([[maybe_unused]] time_point& due) noexcept { return -1; }

  /// Makes every later write to `wake_descriptor`, an eventfd, end a waiting poll(). Called once.
  virtual void listen(int wake_descriptor) = 0;

 protected:
  /// For backends that wait until a descriptor is ready: makes the call that `op` describes, but
  /// does not wait in it.
  /// Returns: true if `op` has completed, with op.result set; false if it is to be tried again when
  ///          its descriptor is ready for readiness_of(op).
  static bool attempt(operation& op) noexcept;
  /// Returns: POLLIN, POLLOUT, or the mask of wait_fd.
  /// Source: poll(2).
  static short readiness_of(const operation& op) noexcept;
};

/// How large a backend's queues are.
struct backend_options {
  /// Submission and completion entries of a ring; powers of two in [1, 32768] and [2, 65536].
  unsigned submissions = 256;
  unsigned completions = 4096;
  /// Called with one line when a better backend exists but could not be used.
  std::function<void(std::string_view)> on_notice;
};

}}  // namespace motet::MOTET_ABI
