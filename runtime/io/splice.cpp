// SPDX-License-Identifier: MIT
// Bytes that go from one descriptor to another inside the kernel. Source: splice(2),
// copy_file_range(2).
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <motet/detail/threads/offloaded.hpp>
#include <motet/fibers/fiber.hpp>
#include <motet/io/io.hpp>
#include <motet/sync/time.hpp>
#include <optional>
#include <system_error>

#include "base/faults.hpp"
#include "base/sigpipe.hpp"
#include "core/thread_state.hpp"
#include "io/copy.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr std::size_t wide_pipe = std::size_t{1} << 20;  // bytes: the default maximum for a user
constexpr std::size_t most_of_file = std::size_t{16} << 20;  // in one call, which nothing ends

/// The pipe through which bytes pass from one stream to another. It grows only after it has been
/// full, because all pipes of a user share one limit. Source: pipe(7), pipe-user-pages-soft.
class way {
 public:
  /// Returns: false if there are no descriptors left.
  bool open() noexcept {
    std::array<int, 2> made{-1, -1};
    if (faults::call("pipe2", ::pipe2, made.data(), O_CLOEXEC) != 0) return false;
    exit_ = fd(made[0]);
    entry_ = fd(made[1]);
    capacity_ = static_cast<std::size_t>(::fcntl(entry_.get(), F_GETPIPE_SZ));
    return true;
  }

  int entry() const noexcept { return entry_.get(); }
  int exit() const noexcept { return exit_.get(); }
  std::size_t capacity() const noexcept { return capacity_; }
  void note_load(std::size_t bytes) noexcept {
    if (bytes < capacity_ || capacity_ == wide_pipe) return;
    const int wider = ::fcntl(entry_.get(), F_SETPIPE_SZ, static_cast<int>(wide_pipe));
    if (wider > 0) capacity_ = static_cast<std::size_t>(wider);
  }

 private:
  fd exit_;
  fd entry_;
  std::size_t capacity_ = 0;
};

/// A socket in blocking mode has the thread wait, whatever splice(2) is told. Pipes do not.
bool made_nonblocking(int descriptor) noexcept {
  struct stat found{};
  if (::fstat(descriptor, &found) != 0) return false;
  if (S_ISFIFO(found.st_mode)) return true;
  const int mode = ::fcntl(descriptor, F_GETFL);
  if (mode < 0) return false;
  return (mode & O_NONBLOCK) != 0 || ::fcntl(descriptor, F_SETFL, mode | O_NONBLOCK) == 0;
}

constexpr unsigned without_wait = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;

/// Returns: bytes moved, or minus an errno value.
ssize_t splice_now(int from, int to, std::size_t size) noexcept {
  const ssize_t moved =
      faults::call("splice", ::splice, from, nullptr, to, nullptr, size, without_wait);
  return moved < 0 ? -errno : moved;
}

/// A socket with something in its error queue is ready for as long as the program leaves it there.
/// Source: recv(2), MSG_ERRQUEUE.
constexpr std::chrono::milliseconds pause_in_vain{1};

/// Calls `splice`, which splices from or to `awaited`, as soon as that is ready.
/// Returns: bytes moved; 0 at the end; minus an errno value that says that this kernel cannot.
/// Throws: std::system_error; a pending interruption.
template <typename Splice>
ssize_t splice_when_ready(const direction_lock& awaited, short events, Splice splice) {
  for (;;) {
    if (awaited.descriptor() < 0) throw_errno(EBADF, "copy");
    const ssize_t moved = splice();
    if (moved >= 0 || moved == -EINVAL || moved == -ENOSYS) return moved;
    if (moved != -EAGAIN && moved != -EINTR) throw_errno(static_cast<int>(-moved), "copy");
    if (moved == -EAGAIN && (io::wait_fd(awaited.descriptor(), events) & events) == 0) {
      sleep_for(pause_in_vain);
    }
  }
}

/// Writes what has entered `through` but cannot be spliced out of it.
void empty_by_hand(const way& through, std::size_t size, direction_lock& to,
                   copy_progress& progress) {
  std::array<std::byte, 4096> part;
  while (size > 0) {
    const std::size_t got =
        io::read(through.exit(), std::span(part).first(std::min(size, part.size())));
    size -= got;
    for (std::span<const std::byte> rest = std::span(part).first(got); !rest.empty();) {
      std::error_code error;
      const std::size_t written = to.write(rest, error);
      progress.delivered(written);
      rest = rest.subspan(written);
      if (error) throw_stream_error(error, "write");
    }
  }
}

/// The pipe is never without a reader, so nothing raises SIGPIPE.
ssize_t load(direction_lock& from, const way& through) {
  return splice_when_ready(from, POLLIN, [&] {
    return splice_now(from.descriptor(), through.entry(), through.capacity());
  });
}

/// Returns: false if this kernel cannot splice to `to`; then all has been written by hand.
bool unload(const way& through, std::size_t size, direction_lock& to, copy_progress& progress) {
  while (size > 0) {
    const ssize_t sent = splice_when_ready(to, POLLOUT, [&] {
      const sigpipe_guard guard;
      return splice_now(through.exit(), to.descriptor(), size);
    });
    if (sent <= 0) {
      empty_by_hand(through, size, to, progress);
      return false;
    }
    progress.delivered(static_cast<std::size_t>(sent));
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

constexpr std::size_t small_part = std::size_t{16}
                                   << 10;  // bytes: less is quicker through a buffer

enum class flow { ended, little, refused };

/// Splices until there is little to splice.
flow splice_much(direction_lock& from, direction_lock& to, way& through, copy_progress& progress) {
  for (;;) {
    checkpoint();
    const ssize_t loaded = load(from, through);
    if (loaded < 0) return flow::refused;
    if (loaded == 0) return flow::ended;
    const auto size = static_cast<std::size_t>(loaded);
    progress.came();
    through.note_load(size);
    if (!unload(through, size, to, progress)) return flow::refused;
    if (size < small_part) return flow::little;
  }
}

bool open_way(way& through, direction_lock& from, direction_lock& to) {
  return made_nonblocking(from.descriptor()) && made_nonblocking(to.descriptor()) && through.open();
}

/// Returns: bytes copied, or minus an errno value.
ssize_t copy_part_of_file(int source, int target) {
  return offload_to(offload_room::own, [source, target] {
    const ssize_t part = faults::call("copy_file_range", ::copy_file_range, source, nullptr, target,
                                      nullptr, most_of_file, 0U);
    return part < 0 ? -errno : part;
  });
}

/// Whether a copy through a buffer would fail in the same way.
bool is_of_the_disk(ssize_t result) noexcept {
  return result == -ENOSPC || result == -EIO || result == -EDQUOT || result == -EFBIG;
}

}  // namespace

/// A pipe uses two descriptors, and splicing through it takes more calls than a read and a write,
/// so it pays only for streams on which much arrives at a time.
bool copy_by_splice(direction_lock& from, direction_lock& to, copy_progress& progress) {
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(small_part);
  std::optional<way> through;
  for (;;) {
    const std::size_t size = copy_part(from, to, {buffer.get(), small_part}, progress);
    if (size == 0) return true;
    if (size < small_part) continue;
    if (!through && !open_way(through.emplace(), from, to)) return false;
    const flow now = splice_much(from, to, *through, progress);
    if (now != flow::little) return now == flow::ended;
  }
}

/// The copy has descriptors of its own, because the numbers of the files may be others' before a
/// thread gets to the call. A file of /proc and the like seems to end at once.
/// Source: copy_file_range(2), BUGS.
bool copy_by_file_range(direction_lock& from, direction_lock& to, copy_progress& progress) {
  const fd source(::fcntl(from.descriptor(), F_DUPFD_CLOEXEC, 0));
  const fd target(::fcntl(to.descriptor(), F_DUPFD_CLOEXEC, 0));
  if (!source || !target) return false;
  for (;;) {
    const ssize_t moved = copy_part_of_file(source.get(), target.get());
    if (moved == -EINTR) continue;
    if (is_of_the_disk(moved)) throw_errno(static_cast<int>(-moved), "copy");
    if (moved < 0 || (moved == 0 && progress.bytes == 0)) return false;
    if (moved == 0) return true;
    progress.came();
    progress.delivered(static_cast<std::size_t>(moved));
  }
}

}}}  // namespace motet::MOTET_ABI::detail
