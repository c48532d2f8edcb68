// SPDX-License-Identifier: MIT
// The sessions that servers have offered for resumption.
#pragma once

#include <openssl/ssl.h>

#include <algorithm>
#include <memory>
#include <motet/detail/base/abi.hpp>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace tls {

struct session_free {
  void operator()(SSL_SESSION* pointer) const noexcept { SSL_SESSION_free(pointer); }
};
using session = std::unique_ptr<SSL_SESSION, session_free>;

/// Of one client; any thread.
class sessions {
 public:
  /// The oldest one makes room, of the same host if that has several. Without memory the session is
  /// dropped.
  void put(const std::string& host, session new_session) noexcept {
    const std::lock_guard lock(guard_);
    try {
      const auto is_of_host = [&](const entry& candidate) { return candidate.host == host; };
      const auto of_host = std::count_if(entries_.begin(), entries_.end(), is_of_host);
      if (of_host == most_of_host) {
        entries_.erase(std::find_if(entries_.begin(), entries_.end(), is_of_host));
      } else if (entries_.size() == limit) {
        entries_.erase(entries_.begin());
      }
      entries_.push_back({host, std::move(new_session)});
    } catch (const std::bad_alloc&) {
    }
  }

  /// Returns: the latest session that `host` has offered; null if there is none. A session is used
  ///          once, because an observer could link two connections that use the same one.
  /// Source: RFC 8446, appendix C.4.
  session take(std::string_view host) noexcept {
    const std::lock_guard lock(guard_);
    const auto last = std::find_if(entries_.rbegin(), entries_.rend(),
                                   [&](const entry& candidate) { return candidate.host == host; });
    if (last == entries_.rend()) return {};
    session result = std::move(last->value);
    entries_.erase(std::next(last).base());
    return result;
  }

 private:
  struct entry {
    std::string host;
    session value;
  };

  static constexpr std::size_t limit = 256;
  static constexpr std::ptrdiff_t most_of_host = 8;

  std::mutex guard_;
  std::vector<entry> entries_;
};

}}}  // namespace motet::MOTET_ABI::tls
