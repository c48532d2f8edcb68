// SPDX-License-Identifier: MIT
// A stream of any kind, for streams and servers that are built on other streams and are not
// templates.
#pragma once

#include <sys/socket.h>

#include <motet/detail/base/owned.hpp>
#include <motet/detail/io/stream_direction.hpp>
#include <motet/io/stream.hpp>
#include <system_error>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Owns a stream. Move-only.
class any_stream {
 public:
  any_stream() noexcept = default;
  template <stream S>
  explicit any_stream(S&& stream) : holder_(new holder<S>(std::forward<S>(stream))) {}

  stream_direction input() noexcept { return holder_->input(); }
  stream_direction output() noexcept { return holder_->output(); }
  void shutdown(int direction) { holder_->shutdown(direction); }
  /// Ends the reads and writes of other fibers.
  void close() { holder_->close(); }
  /// Returns: a descriptor of the stream; -1 if the stream does not expose one.
  int native_handle() const noexcept { return holder_ == nullptr ? -1 : holder_->native_handle(); }

 private:
  struct base {
    base() noexcept = default;
    base(const base&) = delete;
    base& operator=(const base&) = delete;
    virtual ~base() = default;
    virtual stream_direction input() noexcept = 0;
    virtual stream_direction output() noexcept = 0;
    virtual void shutdown(int direction) = 0;
    virtual void close() = 0;
    virtual int native_handle() const noexcept = 0;
  };

  template <typename S>
  struct holder final : base {
    explicit holder(S&& stream) : content(std::move(stream)) {}
    stream_direction input() noexcept override { return input_of(content); }
    stream_direction output() noexcept override { return output_of(content); }
    void shutdown(int direction) override { content.shutdown(direction); }
    void close() override {
      if constexpr (requires { content.close(); }) {
        content.close();
      } else {
        try {
          content.shutdown(SHUT_RDWR);
        } catch (const std::system_error&) {  // it is over
        }
      }
    }
    int native_handle() const noexcept override {
      if constexpr (requires { content.native_handle(); }) {
        return content.native_handle();
      } else {
        return -1;
      }
    }
    S content;
  };

  owned<base> holder_;
};

}}}  // namespace motet::MOTET_ABI::detail
