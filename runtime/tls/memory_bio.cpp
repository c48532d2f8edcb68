// SPDX-License-Identifier: MIT
// See tls/memory_bio.hpp. Source: BIO_meth_new(3).
#include "tls/memory_bio.hpp"

#include <openssl/bio.h>

#include <algorithm>

namespace motet { inline namespace MOTET_ABI { namespace tls {

namespace {

/// The limit for a peer that keeps requesting responses without receiving them.
constexpr std::size_t most_queued = std::size_t{1024} * 1024;

memory_bio& of(BIO* user) noexcept {
  return *static_cast<memory_bio*>(BIO_get_data(user));
}

/// An empty queue means "try again". The end of the stream is reported by the stream below.
int read_arrived(BIO* user, char* buffer, std::size_t size, std::size_t* count) noexcept {
  byte_queue& input = of(user).input;
  BIO_clear_retry_flags(user);
  *count = std::min(size, input.held().size());
  if (*count == 0) {
    BIO_set_retry_read(user);
    return 0;
  }
  std::copy_n(input.held().data(), *count, reinterpret_cast<std::byte*>(buffer));
  input.consume(*count);
  return 1;
}

int queue_to_send(BIO* user, const char* bytes, std::size_t size, std::size_t* count) noexcept {
  BIO_clear_retry_flags(user);
  *count = 0;
  if (of(user).output.held().size() > most_queued) return 0;
  if (!of(user).output.put(std::as_bytes(std::span(bytes, size)))) return 0;
  *count = size;
  return 1;
}

long control(BIO*, int command, long, void*) noexcept {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

int create(BIO* bio) noexcept {
  BIO_set_init(bio, 1);
  return 1;
}

/// Returns: null if there is no memory.
const BIO_METHOD* method() noexcept {
  static BIO_METHOD* const methods = [] {
    BIO_METHOD* table = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "motet memory");
    if (table == nullptr) return table;
    BIO_meth_set_read_ex(table, read_arrived);
    BIO_meth_set_write_ex(table, queue_to_send);
    BIO_meth_set_ctrl(table, control);
    BIO_meth_set_create(table, create);
    return table;
  }();
  return methods;
}

}  // namespace

bool memory_bio::connect_to(SSL* user) noexcept {
  BIO* bio = method() == nullptr ? nullptr : BIO_new(method());
  if (bio == nullptr) return false;
  BIO_set_data(bio, this);
  SSL_set_bio(user, bio, bio);
  return true;
}

}}}  // namespace motet::MOTET_ABI::tls
