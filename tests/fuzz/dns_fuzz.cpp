// SPDX-License-Identifier: MIT
// A numeric host and a port are resolved to what endpoint::parse() makes of them, and bad ones are
// refused. Names are left out: to look them up is the work of the C library and of other machines.
#include <netdb.h>

#include <memory>
#include <motet/net/dns.hpp>
#include <motet/runtime/run.hpp>
#include <stdexcept>
#include <string>
#include <system_error>

#include "check.hpp"

using motet::net::endpoint;

namespace {

bool is_numeric(const std::string& host) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* results = nullptr;
  const bool numeric = ::getaddrinfo(host.c_str(), nullptr, &hints, &results) == 0;
  if (results != nullptr) ::freeaddrinfo(results);
  return numeric;
}

void resolve(const std::string& host, const std::string& service) {
  for (const endpoint& address : motet::dns::resolve(host, service)) {
    fuzz::require(endpoint::parse(address.to_string()) == address);
    const bool number = service.find_first_not_of("0123456789") == service.npos;
    if (number) fuzz::require(address.port() == std::stoi(service));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  const std::string host = input.ConsumeRandomLengthString(60);
  const std::string service = input.ConsumeRemainingBytesAsString();
  const bool refused = host.empty() || service.empty() || host.find('\0') != host.npos ||
                       service.find('\0') != service.npos;
  if (!refused && !is_numeric(host)) return 0;
  motet::options settings;
  settings.backend = "sim";
  motet::run(settings, [&] {
    try {
      resolve(host, service);
      fuzz::require(!refused);
    } catch (const std::invalid_argument&) {
    } catch (const std::system_error&) {  // no such service
      fuzz::require(!refused);
    }
  });
  return 0;
}
