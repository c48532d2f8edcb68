// SPDX-License-Identifier: MIT
// See motet/io/copy.hpp.
#include "io/copy.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <motet/fibers/fiber.hpp>
#include <motet/fibers/group.hpp>
#include <motet/io/copy.hpp>
#include <system_error>

#include "core/thread_state.hpp"
#include "platform/simulated_system.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr std::size_t buffer_size = std::size_t{128} * 1024;

direction_lock hold(const stream_direction& stream, const char* call) {
  std::error_code error;
  direction_lock lock(stream, error);
  if (error) throw_stream_error(error, call);
  return lock;
}

void copy_with(const stream_direction& source, const stream_direction& target,
               copy_progress& progress) {
  here().deliver();
  direction_lock reader = hold(source, "read");
  direction_lock writer = hold(target, "write");
  bool done = false;
  switch (shortcut_between(reader.descriptor(), writer.descriptor())) {
    case shortcut::splice:
      done = copy_by_splice(reader, writer, progress);
      break;
    case shortcut::file_range:
      done = copy_by_file_range(reader, writer, progress);
      break;
    case shortcut::none:
      break;
  }
  if (!done) copy_by_buffer(reader, writer, progress);
}

/// A stream whose peer is gone has ended anyway.
void end_writes(const joined_stream& stream) {
  try {
    stream.end_writes(stream.stream);
  } catch (const std::system_error&) {
  }
}

struct counted_at_end {
  counted_at_end(const copy_progress& first, const copy_progress& second, proxied& result) noexcept
      : first_progress(first), second_progress(second), totals(result) {}
  counted_at_end(const counted_at_end&) = delete;
  counted_at_end& operator=(const counted_at_end&) = delete;
  ~counted_at_end() { totals = {first_progress.bytes, second_progress.bytes}; }

  const copy_progress& first_progress;
  const copy_progress& second_progress;
  proxied& totals;
};

}  // namespace

shortcut shortcut_between(int source_fd, int target_fd) noexcept {
  if (simulated_system::present() != nullptr) return shortcut::none;
  struct stat source{};
  struct stat target{};
  if (source_fd < 0 || target_fd < 0 || ::fstat(source_fd, &source) != 0 ||
      ::fstat(target_fd, &target) != 0) {
    return shortcut::none;
  }
  if (S_ISREG(source.st_mode) && S_ISREG(target.st_mode)) return shortcut::file_range;
  const auto flows = [](mode_t mode) { return S_ISSOCK(mode) || S_ISFIFO(mode); };
  return flows(source.st_mode) && flows(target.st_mode) ? shortcut::splice : shortcut::none;
}

std::size_t copy_part(direction_lock& source, direction_lock& target, std::span<std::byte> buffer,
                      copy_progress& progress) {
  std::error_code error;
  const std::size_t size = source.read(buffer, error);
  if (error) throw_stream_error(error, "read");
  if (size > 0) progress.came();
  for (std::span<const std::byte> rest = buffer.first(size); !rest.empty();) {
    const std::size_t bytes_written = target.write(rest, error);
    progress.delivered(bytes_written);
    rest = rest.subspan(bytes_written);
    if (error) throw_stream_error(error, "write");
  }
  return size;
}

void copy_by_buffer(direction_lock& source, direction_lock& target, copy_progress& progress) {
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(buffer_size);
  while (copy_part(source, target, {buffer.get(), buffer_size}, progress) > 0) continue;
}

std::uint64_t copy(const stream_direction& source, const stream_direction& target) {
  copy_progress progress;
  copy_with(source, target, progress);
  return progress.bytes;
}

void proxy(const joined_stream& first, const joined_stream& second, std::optional<timespan> idle,
           proxied& totals, call_site site) {
  copy_progress first_progress;
  copy_progress second_progress;
  const counted_at_end counter(first_progress, second_progress, totals);
  const auto join = [&] {
    group directions;
    directions.spin(
        {.name = "proxy, forth"},
        [&] {
          copy_with(first.input, second.output, first_progress);
          end_writes(second);
        },
        site);
    directions.spin(
        {.name = "proxy, back"},
        [&] {
          copy_with(second.input, first.output, second_progress);
          end_writes(first);
        },
        site);
    directions.await_all();
  };
  if (!idle.has_value()) {
    join();
  } else {
    first_progress.idle = second_progress.idle = *idle;
    with_timeout(
        idle->length,
        [&](deadline& limit) {
          first_progress.limit = second_progress.limit = &limit;
          join();
        },
        site);
  }
}

}}}  // namespace motet::MOTET_ABI::detail
