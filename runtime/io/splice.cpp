// SPDX-License-Identifier: MIT
// Bytes that go from one descriptor to another inside the kernel. Source: splice(2),
// copy_file_range(2).
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <motet/detail/threads/offloaded.hpp>
#include <motet/fibers/fiber.hpp>
#include <motet/io/io.hpp>
#include <motet/sync/time.hpp>
#include <optional>
#include <system_error>

#include "base/faults.hpp"
#include "base/sigpipe.hpp"
#include "base/system_calls.hpp"
#include "io/copy.hpp"
#include "io/exact_io.hpp"

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
    std::array<int, 2> ends{-1, -1};
    if (faults::call("pipe2", ::pipe2, ends.data(), O_CLOEXEC) != 0) return false;
    exit_ = fd(ends[0]);
    entry_ = fd(ends[1]);
    capacity_ = static_cast<std::size_t>(sys::fcntl(entry_.get(), F_GETPIPE_SZ));
    return true;
  }

  int entry() const noexcept { return entry_.get(); }
  int exit() const noexcept { return exit_.get(); }
  std::size_t capacity() const noexcept { return capacity_; }
  void note_load(std::size_t bytes) noexcept {
    if (bytes < capacity_ || capacity_ == wide_pipe) return;
    const int wider = sys::fcntl(entry_.get(), F_SETPIPE_SZ, static_cast<int>(wide_pipe));
    if (wider > 0) capacity_ = static_cast<std::size_t>(wider);
  }

 private:
  fd exit_;
  fd entry_;
  std::size_t capacity_ = 0;
};

/// A socket in blocking mode has the thread wait, whatever splice(2) is told. Pipes do not.
bool made_nonblocking(int descriptor) noexcept {
  struct stat attributes{};
  if (::fstat(descriptor, &attributes) != 0) return false;
  if (S_ISFIFO(attributes.st_mode)) return true;
  const int mode = sys::fcntl(descriptor, F_GETFL);
  if (mode < 0) return false;
  return (mode & O_NONBLOCK) != 0 || sys::fcntl(descriptor, F_SETFL, mode | O_NONBLOCK) == 0;
}

constexpr unsigned without_wait = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;

/// Returns: bytes moved, or minus an errno value.
ssize_t splice_now(int source, int target, std::size_t size) noexcept {
  const ssize_t count =
      faults::call("splice", sys::splice, source, nullptr, target, nullptr, size, without_wait);
  return count < 0 ? -errno : count;
}

/// Calls `splice`, which splices from or to `stream`, as soon as that is ready.
/// Returns: bytes moved; 0 at the end; minus an errno value that says that this kernel cannot.
/// Throws: std::system_error; a pending interruption.
template <typename Splice>
ssize_t splice_when_ready(const direction_lock& stream, short events, Splice splice) {
  for (vain_waits waits;;) {
    if (stream.descriptor() < 0) throw_errno(EBADF, "copy");
    const ssize_t count = splice();
    if (count >= 0 || count == -EINVAL || count == -ENOSYS) return count;
    if (count != -EAGAIN && count != -EINTR) throw_errno(static_cast<int>(-count), "copy");
    if (count == -EAGAIN && (io::wait_fd(stream.descriptor(), events) & events) == 0)
      sleep_for(waits.next_pause());
  }
}

/// Writes what has entered `channel` but cannot be spliced out of it.
void empty_by_hand(const way& channel, std::size_t size, direction_lock& target,
                   copy_progress& progress) {
  std::array<std::byte, 4096> part;
  while (size > 0) {
    const std::size_t count =
        io::read(channel.exit(), std::span(part).first(std::min(size, part.size())));
    size -= count;
    for (std::span<const std::byte> rest = std::span(part).first(count); !rest.empty();) {
      std::error_code error;
      const std::size_t bytes_written = target.write(rest, error);
      progress.delivered(bytes_written);
      rest = rest.subspan(bytes_written);
      if (error) throw_stream_error(error, "write");
    }
  }
}

/// The pipe is never without a reader, so nothing raises SIGPIPE.
ssize_t load(direction_lock& source, const way& channel) {
  return splice_when_ready(source, POLLIN, [&] {
    return splice_now(source.descriptor(), channel.entry(), channel.capacity());
  });
}

/// Returns: false if this kernel cannot splice to `target`; then all has been written by hand.
bool unload(const way& channel, std::size_t size, direction_lock& target, copy_progress& progress) {
  while (size > 0) {
    const ssize_t count = splice_when_ready(target, POLLOUT, [&] {
      const sigpipe_guard guard;
      return splice_now(channel.exit(), target.descriptor(), size);
    });
    if (count <= 0) {
      empty_by_hand(channel, size, target, progress);
      return false;
    }
    progress.delivered(static_cast<std::size_t>(count));
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

constexpr std::size_t small_part = std::size_t{16}
                                   << 10;  // bytes: less is quicker through a buffer

enum class flow { ended, little, refused };

/// Splices until there is little to splice.
flow splice_much(direction_lock& source, direction_lock& target, way& channel,
                 copy_progress& progress) {
  for (;;) {
    checkpoint();
    const ssize_t load_size = load(source, channel);
    if (load_size < 0) return flow::refused;
    if (load_size == 0) return flow::ended;
    const auto size = static_cast<std::size_t>(load_size);
    progress.came();
    channel.note_load(size);
    if (!unload(channel, size, target, progress)) return flow::refused;
    if (size < small_part) return flow::little;
  }
}

bool open_way(way& channel, direction_lock& source, direction_lock& target) {
  return made_nonblocking(source.descriptor()) && made_nonblocking(target.descriptor()) &&
         channel.open();
}

/// Returns: bytes copied, or minus an errno value.
ssize_t copy_part_of_file(int source, int target) {
  return offload_to(offload_pool::own, [source, target] {
    const ssize_t part = faults::call("copy_file_range", sys::copy_file_range, source, nullptr,
                                      target, nullptr, most_of_file, 0U);
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
bool copy_by_splice(direction_lock& source, direction_lock& target, copy_progress& progress) {
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(small_part);
  std::optional<way> channel;
  for (;;) {
    const std::size_t size = copy_part(source, target, {buffer.get(), small_part}, progress);
    if (size == 0) return true;
    if (size < small_part) continue;
    if (!channel && !open_way(channel.emplace(), source, target)) return false;
    const flow result = splice_much(source, target, *channel, progress);
    if (result != flow::little) return result == flow::ended;
  }
}

/// The copy has descriptors of its own, because the numbers of the files may be others' before a
/// thread gets to the call. A file of /proc and the like seems to end at once.
/// Source: copy_file_range(2), BUGS.
bool copy_by_file_range(direction_lock& reader, direction_lock& writer, copy_progress& progress) {
  const fd source(sys::fcntl(reader.descriptor(), F_DUPFD_CLOEXEC, 0));
  const fd target(sys::fcntl(writer.descriptor(), F_DUPFD_CLOEXEC, 0));
  if (!source || !target) return false;
  for (;;) {
    const ssize_t count = copy_part_of_file(source.get(), target.get());
    if (count == -EINTR) continue;
    if (is_of_the_disk(count)) throw_errno(static_cast<int>(-count), "copy");
    if (count < 0 || (count == 0 && progress.bytes == 0)) return false;
    if (count == 0) return true;
    progress.came();
    progress.delivered(static_cast<std::size_t>(count));
  }
}

}}}  // namespace motet::MOTET_ABI::detail
