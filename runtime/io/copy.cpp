// SPDX-License-Identifier: MIT
// See motet/copy.hpp.
#include "io/copy.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <motet/copy.hpp>
#include <motet/detail/fibers/group.hpp>
#include <motet/fiber.hpp>
#include <system_error>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr std::size_t buffer_size = std::size_t{128} * 1024;

direction_lock hold(const stream_direction& wanted, const char* what) {
  std::error_code error;
  direction_lock held(wanted, error);
  if (error) throw_stream_error(error, what);
  return held;
}

void copy_with(const stream_direction& from, const stream_direction& to, copy_progress& progress) {
  here().deliver();
  direction_lock in = hold(from, "read");
  direction_lock out = hold(to, "write");
  bool done = false;
  switch (shortcut_between(in.descriptor(), out.descriptor())) {
    case shortcut::splice:
      done = copy_by_splice(in, out, progress);
      break;
    case shortcut::file_range:
      done = copy_by_file_range(in, out, progress);
      break;
    case shortcut::none:
      break;
  }
  if (!done) copy_by_buffer(in, out, progress);
}

/// A stream whose peer is gone has ended anyway.
void end_writes(const joined_stream& ended) {
  try {
    ended.end_writes(ended.stream);
  } catch (const std::system_error&) {
  }
}

struct counted_at_end {
  counted_at_end(const copy_progress& first, const copy_progress& second, proxied& to) noexcept
      : forth(first), back(second), moved(to) {}
  counted_at_end(const counted_at_end&) = delete;
  counted_at_end& operator=(const counted_at_end&) = delete;
  ~counted_at_end() { moved = {forth.bytes, back.bytes}; }

  const copy_progress& forth;
  const copy_progress& back;
  proxied& moved;
};

}  // namespace

shortcut shortcut_between(int from, int to) noexcept {
  struct stat source{};
  struct stat target{};
  if (from < 0 || to < 0 || ::fstat(from, &source) != 0 || ::fstat(to, &target) != 0) {
    return shortcut::none;
  }
  if (S_ISREG(source.st_mode) && S_ISREG(target.st_mode)) return shortcut::file_range;
  const auto flows = [](mode_t mode) { return S_ISSOCK(mode) || S_ISFIFO(mode); };
  return flows(source.st_mode) && flows(target.st_mode) ? shortcut::splice : shortcut::none;
}

std::size_t copy_part(direction_lock& from, direction_lock& to, std::span<std::byte> buffer,
                      copy_progress& progress) {
  std::error_code error;
  const std::size_t size = from.read(buffer, error);
  if (error) throw_stream_error(error, "read");
  if (size > 0) progress.came();
  for (std::span<const std::byte> rest = buffer.first(size); !rest.empty();) {
    const std::size_t written = to.write(rest, error);
    progress.delivered(written);
    rest = rest.subspan(written);
    if (error) throw_stream_error(error, "write");
  }
  return size;
}

void copy_by_buffer(direction_lock& from, direction_lock& to, copy_progress& progress) {
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(buffer_size);
  while (copy_part(from, to, {buffer.get(), buffer_size}, progress) > 0) continue;
}

std::uint64_t copy(const stream_direction& from, const stream_direction& to) {
  copy_progress progress;
  copy_with(from, to, progress);
  return progress.bytes;
}

void proxy(const joined_stream& first, const joined_stream& second, std::optional<timespan> idle,
           proxied& moved, call_site site) {
  copy_progress forth;
  copy_progress back;
  const counted_at_end counted(forth, back, moved);
  const auto join = [&] {
    group both;
    both.spin(
        {.name = "proxy, forth"},
        [&] {
          copy_with(first.input, second.output, forth);
          end_writes(second);
        },
        site);
    both.spin(
        {.name = "proxy, back"},
        [&] {
          copy_with(second.input, first.output, back);
          end_writes(first);
        },
        site);
    both.await_all();
  };
  if (!idle.has_value()) {
    join();
  } else {
    forth.idle = back.idle = *idle;
    with_timeout(
        idle->length,
        [&](deadline& limit) {
          forth.limit = back.limit = &limit;
          join();
        },
        site);
  }
}

}}}  // namespace motet::MOTET_ABI::detail
