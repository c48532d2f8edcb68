// SPDX-License-Identifier: MIT
// See motet/net/dns.hpp. getaddrinfo(3) blocks and cannot be interrupted: so it is an offloaded
// call that owns copies of its arguments, and that its caller may leave.
#include <netdb.h>
#include <sys/socket.h>

#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <memory>
#include <motet/detail/threads/offloaded.hpp>
#include <motet/net/dns.hpp>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>

#include "core/thread_state.hpp"
#include "platform/simulated_system.hpp"

namespace motet { inline namespace MOTET_ABI { namespace dns {

namespace {

using endpoints = std::vector<net::endpoint>;

/// The category of the codes that getaddrinfo(3) returns.
class resolver_category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "getaddrinfo"; }
  std::string message(int code) const override { return ::gai_strerror(code); }
  std::error_condition default_error_condition(int code) const noexcept override {
    if (code == EAI_AGAIN) return std::errc::resource_unavailable_try_again;
    return {code, *this};
  }

  /// Never destroyed: errors may outlive statics.
  static const resolver_category& get() {
    alignas(resolver_category) static std::byte storage[sizeof(resolver_category)];
    static const resolver_category& category = *::new (storage) resolver_category;
    return category;
  }
};

[[noreturn]] void refuse(int code, int system_error, const std::string& host) {
  if (code == EAI_MEMORY) throw std::bad_alloc();
  const std::error_code error = code == EAI_SYSTEM
                                    ? std::error_code(system_error, std::system_category())
                                    : std::error_code(code, resolver_category::get());
  throw std::system_error(error, "resolve " + host);
}

/// One call of getaddrinfo(3).
class lookup {
 public:
  lookup(const std::string& host, const std::string& service, int flags) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    addrinfo* list = nullptr;
    code_ = ::getaddrinfo(host.c_str(), service.c_str(), &hints, &list);
    system_error_ = errno;
    list_.reset(list);
  }

  bool succeeded() const noexcept { return code_ == 0; }

  endpoints endpoints_for(const std::string& host) const {
    if (code_ != 0) refuse(code_, system_error_, host);
    endpoints addresses;
    for (const addrinfo* entry = list_.get(); entry != nullptr; entry = entry->ai_next) {
      if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
      addresses.emplace_back(entry->ai_addr, entry->ai_addrlen);
    }
    if (addresses.empty()) refuse(EAI_NONAME, 0, host);
    return addresses;
  }

 private:
  struct list_freer {
    void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
  };

  int code_ = 0;
  int system_error_ = 0;
  std::unique_ptr<addrinfo, list_freer> list_;
};

void check(std::string_view text, const char* part) {
  if (!text.empty() && text.find('\0') == std::string_view::npos) return;
  throw std::invalid_argument(std::string("resolve: ") + part + " is empty or contains a NUL");
}

/// getaddrinfo(3) accepts a number that is too large, but takes another port for it, and a number
/// behind spaces or a sign, with which no name of a service begins. Source: RFC 6335, 5.1.
void check_port(std::string_view service) {
  std::uint16_t port = 0;
  const char* last = service.data() + service.size();
  const auto [end, error] = std::from_chars(service.data(), last, port);
  const bool signed_or_spaced = std::isalnum(static_cast<unsigned char>(service.front())) == 0;
  if (!signed_or_spaced && (end != last || error == std::errc())) return;
  throw std::invalid_argument("resolve: the service must be a name, or a number from 0 to 65535");
}

}  // namespace

endpoints resolve(std::string_view host, std::string_view service) {
  check(host, "the host");
  check(service, "the service");
  check_port(service);
  const std::string name(host);
  const std::string port(service);
  if (detail::thread_state* thread = detail::self()) thread->deliver();
  const lookup numbers(name, port, AI_NUMERICHOST | AI_NUMERICSERV);
  if (numbers.succeeded()) return numbers.endpoints_for(name);
  if (detail::simulated_system* const simulated = detail::simulated_system::present()) {
    const std::optional<std::string> address = simulated->address_of(name);
    if (!address.has_value()) refuse(EAI_NONAME, 0, name);
    return lookup(*address, port, AI_NUMERICHOST).endpoints_for(name);
  }
  return detail::offload_owned_to(detail::offload_pool::names, [name, port] {
    return lookup(name, port, 0).endpoints_for(name);
  });
}

endpoints resolve(std::string_view host, std::uint16_t port) {
  return resolve(host, std::to_string(port));
}

}}}  // namespace motet::MOTET_ABI::dns
