// SPDX-License-Identifier: MIT
// What OpenSSL takes for the connection: memory. Fibers carry the bytes between it and the stream
// below, so OpenSSL never waits, and never calls anything that switches.
#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <motet/detail/base/abi.hpp>

#include "tls/byte_queue.hpp"

namespace motet { inline namespace MOTET_ABI { namespace tls {

class memory_bio {
 public:
  memory_bio() noexcept = default;
  memory_bio(const memory_bio&) = delete;
  memory_bio& operator=(const memory_bio&) = delete;

  byte_queue input;   // from the peer, for OpenSSL
  byte_queue output;  // from OpenSSL, for the peer

  /// `user` reads from this and writes to it, and must not outlive it.
  /// Returns: false if there is no memory.
  bool connect_to(SSL* user) noexcept;
};

}}}  // namespace motet::MOTET_ABI::tls
