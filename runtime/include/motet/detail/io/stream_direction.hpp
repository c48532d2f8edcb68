// SPDX-License-Identifier: MIT
// A direction of a stream, for calls that move bytes in several parts and keep the turn meanwhile.
#pragma once

#include <cstddef>
#include <motet/detail/base/abi.hpp>
#include <motet/detail/base/taken.hpp>
#include <span>
#include <system_error>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// How to use one direction of a kind of stream. The calls set `error` as those of the streams do:
/// operation_canceled means a pending interruption.
struct direction_calls {
  /// Waits for the turn.
  /// Returns: the argument of the other calls; valid until release(), even if the stream is
  ///          moved or closed meanwhile.
  void* (*acquire)(void* stream, std::error_code& error) noexcept;
  void (*release)(void* stream) noexcept;
  /// Reads or writes, whichever the direction is for.
  /// Returns: bytes moved, perhaps fewer than there are in `bytes`.
  std::size_t (*move)(void* stream, std::span<std::byte> bytes, std::error_code& error) noexcept;
  /// Returns: a descriptor with which the kernel may move the bytes itself; -1 if there is none.
  int (*descriptor)(void* stream) noexcept;
};

/// For a stream without turns.
template <typename Stream, bool Writes>
inline constexpr direction_calls plain_direction{
    [](void* stream, std::error_code& error) noexcept {
      error.clear();
      return stream;
    },
    [](void*) noexcept {},
    [](void* object, std::span<std::byte> bytes, std::error_code& error) noexcept -> std::size_t {
      auto& stream = *static_cast<Stream*>(object);
      if constexpr (Writes) {
        return stream.write(std::span<const std::byte>(bytes), error);
      } else {
        return stream.read(bytes, error);
      }
    },
    [](void*) noexcept { return -1; },
};

/// A direction of a stream, which must outlive this object.
struct stream_direction {
  void* stream = nullptr;
  const direction_calls* calls = nullptr;
};

/// Holds the turn of a direction. Move-only.
class direction_lock {
 public:
  direction_lock() noexcept = default;
  /// Switchpoint.
  direction_lock(const stream_direction& direction, std::error_code& error) noexcept
      : calls_(direction.calls), stream_(direction.calls->acquire(direction.stream, error)) {
    if (error) calls_ = nullptr;
  }
  direction_lock(direction_lock&& other) noexcept
      : calls_(taken(other.calls_)), stream_(other.stream_) {}
  direction_lock& operator=(direction_lock&& other) noexcept {
    calls_ = taken(other.calls_, calls_);
    stream_ = taken(other.stream_, stream_);
    return *this;
  }
  ~direction_lock() {
    if (calls_ != nullptr) calls_->release(stream_);
  }

  explicit operator bool() const noexcept { return calls_ != nullptr; }
  std::size_t read(std::span<std::byte> buffer, std::error_code& error) noexcept {
    return calls_->move(stream_, buffer, error);
  }
  std::size_t write(std::span<const std::byte> bytes, std::error_code& error) noexcept;
  int descriptor() const noexcept { return calls_->descriptor(stream_); }

 private:
  const direction_calls* calls_ = nullptr;
  void* stream_ = nullptr;
};

/// The directions of `stream`; a kind of stream that has turns provides its own by overloading this
/// function for that kind.
template <typename Stream>
stream_direction input_of(Stream& stream) {
  if constexpr (requires { stream.input_direction(); }) {
    return stream.input_direction();
  } else {
    return {&stream, &plain_direction<Stream, false>};
  }
}
template <typename Stream>
stream_direction output_of(Stream& stream) {
  if constexpr (requires { stream.output_direction(); }) {
    return stream.output_direction();
  } else {
    return {&stream, &plain_direction<Stream, true>};
  }
}

/// Throws: a pending interruption, for operation_canceled; else std::system_error.
[[noreturn]] void throw_stream_error(const std::error_code& error, const char* description);

}}}  // namespace motet::MOTET_ABI::detail
