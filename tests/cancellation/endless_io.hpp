// SPDX-License-Identifier: MIT
// Descriptors on which calls need not wait.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "support.hpp"

namespace testing {

using motet::fd;

/// Gives zeros, and takes everything.
inline fd zeros() {
  return fd(::open("/dev/zero", O_RDWR | O_CLOEXEC));
}

/// A file in memory.
inline fd file_of(std::string_view text) {
  fd descriptor(::memfd_create("endless", MFD_CLOEXEC));
  if (!descriptor || ::ftruncate(descriptor.get(), 0) != 0)
    throw std::runtime_error("memfd_create");
  for (std::size_t offset = 0; offset < text.size();) {
    const ssize_t size = ::pwrite(descriptor.get(), text.data() + offset, text.size() - offset,
                                  static_cast<off_t>(offset));
    if (size <= 0) throw std::runtime_error("pwrite");
    offset += static_cast<std::size_t>(size);
  }
  return descriptor;
}

/// More lines than a loop that is to end can read.
inline fd many_lines() {
  return file_of(std::string(std::size_t{1} << 22, '\n'));
}

/// A socket whose peer will send no more.
inline descriptor_pair ended_socket() {
  descriptor_pair ends = make_socket_pair();
  ::shutdown(ends.second(), SHUT_WR);
  return {::dup(ends.first()), ::dup(ends.second())};
}

/// A Unix socket that listens, under a name that the kernel chooses.
class unix_listening {
 public:
  unix_listening() : listening_(make()) {
    address_.sun_family = AF_UNIX;
    if (::bind(listening_.get(), address(), sizeof(sa_family_t)) != 0 ||
        ::listen(listening_.get(), 64) != 0) {
      throw std::runtime_error("listen");
    }
    size_ = sizeof address_;
    ::getsockname(listening_.get(), address(), &size_);
  }

  static fd make() { return fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }
  int get() const { return listening_.get(); }
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&address_); }
  socklen_t size() const { return size_; }
  /// Connects, and leaves the connection for somebody to accept.
  fd knock() {
    fd descriptor = make();
    if (::connect(descriptor.get(), address(), size_) != 0) throw std::runtime_error("connect");
    return descriptor;
  }
  /// Takes a connection and drops it.
  void answer() const { const fd accepted(::accept(listening_.get(), nullptr, nullptr)); }

 private:
  fd listening_;
  sockaddr_un address_{};
  socklen_t size_ = 0;
};

/// What calls read to, and write from.
inline std::array<std::byte, 1> single;
inline const std::span<std::byte> no_room;
inline const std::span<const std::byte> no_bytes;

}  // namespace testing
