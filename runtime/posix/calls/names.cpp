// SPDX-License-Identifier: MIT
// getaddrinfo(3) and getnameinfo(3) are called on another thread, with copies of their arguments,
// so that an interrupted fiber can abandon the call.
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "posix/caller.hpp"
#include "posix/calls/plain_call.hpp"
#include "posix/functions.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

struct list_freer {
  void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};

std::optional<std::string> copy_of(const char* text) {
  return text == nullptr ? std::nullopt : std::optional<std::string>(text);
}

const char* text_of(const std::optional<std::string>& text) noexcept {
  return text.has_value() ? text->c_str() : nullptr;
}

/// The outcome of a look-up: its code, and errno for EAI_SYSTEM.
struct lookup_code {
  int code = 0;
  int error = 0;

  void note(int result) noexcept {
    code = result;
    error = errno;
  }
};

struct address_lookup : lookup_code {
  void operator()() noexcept {
    addrinfo* first = nullptr;
    note(libc.getaddrinfo(text_of(host), text_of(service), hints.has_value() ? &*hints : nullptr,
                          &first));
    if (code == 0) list.reset(first);
  }
  std::optional<std::string> host;
  std::optional<std::string> service;
  std::optional<addrinfo> hints;
  std::unique_ptr<addrinfo, list_freer> list;
};

struct name_lookup : lookup_code {
  void operator()() noexcept {
    note(libc.getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host.data(),
                          static_cast<socklen_t>(host.size()), service.data(),
                          static_cast<socklen_t>(service.size()), flags));
  }
  sockaddr_storage address{};
  socklen_t length = 0;
  std::string host;
  std::string service;
  int flags = 0;
};

/// Makes a look-up on another thread, and calls `use(lookup)` if it has succeeded.
/// Returns: its code; EAI_SYSTEM for an interruption, which stays pending.
template <typename Lookup, typename Use>
int look_up(thread_state& home, Lookup lookup, Use use) {
  const auto ended =
      plain_call<Lookup>::make(home, offload_pool::names, on_signal::go_on, std::move(lookup));
  if (ended == nullptr) return EAI_SYSTEM;
  Lookup& outcome = ended->call();
  errno = outcome.error;
  if (outcome.code == 0) use(outcome);
  return outcome.code;
}

/// Whether no module of the name service is asked.
bool is_numeric(const addrinfo* hints) noexcept {
  constexpr int numeric = AI_NUMERICHOST | AI_NUMERICSERV;
  return hints != nullptr && (hints->ai_flags & numeric) == numeric;
}

void copy_to(const std::string& text, char* buffer, socklen_t size) noexcept {
  if (buffer != nullptr && size > 0)
    std::memcpy(buffer, text.c_str(), std::strlen(text.c_str()) + 1);
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** list) {
  const fiber_call call;
  if (is_numeric(hints) || !call.may_wait()) return libc.getaddrinfo(host, service, hints, list);
  try {
    address_lookup lookup;
    lookup.host = copy_of(host);
    lookup.service = copy_of(service);
    if (hints != nullptr) lookup.hints = *hints;
    return look_up(call.home(), std::move(lookup),
                   [&](address_lookup& outcome) { *list = outcome.list.release(); });
  } catch (const std::bad_alloc&) {
    return EAI_MEMORY;
  }
}

int getnameinfo(const sockaddr* address, socklen_t length, char* host, socklen_t host_size,
                char* service, socklen_t service_size, int flags) {
  const fiber_call call;
  const bool is_usual = address != nullptr && length <= sizeof(sockaddr_storage);
  const bool is_quick = (host == nullptr || (flags & NI_NUMERICHOST) != 0) &&
                        (service == nullptr || (flags & NI_NUMERICSERV) != 0);
  if (!is_usual || is_quick || !call.may_wait())
    return libc.getnameinfo(address, length, host, host_size, service, service_size, flags);
  try {
    name_lookup lookup;
    std::memcpy(&lookup.address, address, length);
    lookup.length = length;
    lookup.host.resize(host == nullptr ? 0 : host_size);
    lookup.service.resize(service == nullptr ? 0 : service_size);
    lookup.flags = flags;
    return look_up(call.home(), std::move(lookup), [&](const name_lookup& outcome) {
      copy_to(outcome.host, host, host_size);
      copy_to(outcome.service, service, service_size);
    });
  } catch (const std::bad_alloc&) {
    return EAI_MEMORY;
  }
}

}  // extern "C"
