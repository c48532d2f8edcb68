// SPDX-License-Identifier: MIT
// res_query(3) and its relatives wait inside the C library, so another thread calls them, with a
// resolver state of its own and the caller's settings.
#include <netdb.h>
#include <resolv.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <iterator>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "posix/caller.hpp"
#include "posix/calls/plain_call.hpp"
#include "posix/functions.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

using resolver_state = struct __res_state;  // also the name of a function

/// What a program may have set in a state: options, time limits, servers and domains.
void copy_settings(const resolver_state& from, resolver_state& to) noexcept {
  to.options = from.options;
  to.retrans = from.retrans;
  to.retry = from.retry;
  to.ndots = from.ndots;
  to.nscount = from.nscount;
  std::memcpy(to.nsaddr_list, from.nsaddr_list, sizeof to.nsaddr_list);
  std::memcpy(to.defdname, from.defdname, sizeof to.defdname);
  for (std::size_t i = 0; i < std::size(to.dnsrch); ++i) {
    const char* const domain = from.dnsrch[i];
    const bool is_own = domain != nullptr && domain >= from.defdname &&
                        domain < from.defdname + sizeof from.defdname;
    to.dnsrch[i] = is_own ? to.defdname + (domain - from.defdname) : nullptr;
  }
}

struct query_call {
  using function = std::function<int(res_state state, unsigned char* answer, int size)>;

  void operator()() noexcept {
    resolver_state state{};
    error = errno;
    if (::res_ninit(&state) != 0) return;
    copy_settings(settings, state);
    result = ask(&state, answer.data(), static_cast<int>(answer.size()));
    error = errno;
    resolver_error = state.res_h_errno;
    ::res_nclose(&state);
  }

  resolver_state settings{};
  function ask;
  std::vector<unsigned char> answer;
  int result = -1;
  int error = 0;
  int resolver_error = NETDB_INTERNAL;
};

int note_failure(resolver_state& state, int error) noexcept {
  state.res_h_errno = NETDB_INTERNAL;
  h_errno = NETDB_INTERNAL;
  return fail(error);
}

/// An answer that reports an error is left in the buffer, as by the C library.
int ask_elsewhere(thread_state& home, resolver_state& state, unsigned char* answer, int size,
                  query_call::function ask) {
  if ((state.options & RES_INIT) == 0 && ::res_ninit(&state) != 0) return -1;
  query_call query;
  copy_settings(state, query.settings);
  query.ask = std::move(ask);
  query.answer.resize(static_cast<std::size_t>(size));
  const auto ended =
      plain_call<query_call>::make(home, offload_pool::names, on_signal::go_on, std::move(query));
  if (ended == nullptr) return note_failure(state, errno);
  const query_call& outcome = ended->call();
  std::copy(outcome.answer.begin(), outcome.answer.end(), answer);
  state.res_h_errno = outcome.resolver_error;
  h_errno = outcome.resolver_error;
  return outcome.result < 0 ? fail(outcome.error) : outcome.result;
}

/// Calls `ask` on another thread, or `block()` where no fiber can wait.
template <typename Block, typename MakeAsk>
int query(res_state state, unsigned char* answer, int size, Block block,
          MakeAsk make_ask) noexcept {
  const fiber_call call;
  if (answer == nullptr || size <= 0 || !call.may_wait()) return block();
  try {
    return call.result(ask_elsewhere(call.home(), *state, answer, size, make_ask()));
  } catch (const std::bad_alloc&) {
    return note_failure(*state, ENOMEM);
  }
}

using named_query = int (*)(res_state, const char*, int, int, unsigned char*, int) noexcept;

query_call::function asking(named_query function, const char* name, int kind, int type) {
  return [function, text = std::string(name), kind, type](res_state state, unsigned char* answer,
                                                          int size) {
    return function(state, text.c_str(), kind, type, answer, size);
  };
}

query_call::function asking_domain(const char* name, const char* domain, int kind, int type) {
  return [text = std::string(name), has_domain = domain != nullptr,
          other = std::string(domain != nullptr ? domain : ""), kind,
          type](res_state state, unsigned char* answer, int size) {
    return libc.res_nquerydomain(state, text.c_str(), has_domain ? other.c_str() : nullptr, kind,
                                 type, answer, size);
  };
}

query_call::function sending(const unsigned char* message, int length) {
  return [copy = std::vector<unsigned char>(message, message + length)](
             res_state state, unsigned char* answer, int size) {
    return libc.res_nsend(state, copy.data(), static_cast<int>(copy.size()), answer, size);
  };
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

int res_nquery(res_state state, const char* name, int kind, int type, unsigned char* answer,
               int size) noexcept {
  return query(
      state, answer, size, [&] { return libc.res_nquery(state, name, kind, type, answer, size); },
      [&] { return asking(libc.res_nquery, name, kind, type); });
}

int res_nsearch(res_state state, const char* name, int kind, int type, unsigned char* answer,
                int size) noexcept {
  return query(
      state, answer, size, [&] { return libc.res_nsearch(state, name, kind, type, answer, size); },
      [&] { return asking(libc.res_nsearch, name, kind, type); });
}

int res_nquerydomain(res_state state, const char* name, const char* domain, int kind, int type,
                     unsigned char* answer, int size) noexcept {
  return query(
      state, answer, size,
      [&] { return libc.res_nquerydomain(state, name, domain, kind, type, answer, size); },
      [&] { return asking_domain(name, domain, kind, type); });
}

int res_nsend(res_state state, const unsigned char* message, int length, unsigned char* answer,
              int size) noexcept {
  const auto block = [&] { return libc.res_nsend(state, message, length, answer, size); };
  if (length < 0) return block();
  return query(state, answer, size, block, [&] { return sending(message, length); });
}

int res_query(const char* name, int kind, int type, unsigned char* answer, int size) noexcept {
  return query(
      &_res, answer, size, [&] { return libc.res_query(name, kind, type, answer, size); },
      [&] { return asking(libc.res_nquery, name, kind, type); });
}

int res_search(const char* name, int kind, int type, unsigned char* answer, int size) noexcept {
  return query(
      &_res, answer, size, [&] { return libc.res_search(name, kind, type, answer, size); },
      [&] { return asking(libc.res_nsearch, name, kind, type); });
}

int res_querydomain(const char* name, const char* domain, int kind, int type, unsigned char* answer,
                    int size) noexcept {
  return query(
      &_res, answer, size,
      [&] { return libc.res_querydomain(name, domain, kind, type, answer, size); },
      [&] { return asking_domain(name, domain, kind, type); });
}

int res_send(const unsigned char* message, int length, unsigned char* answer, int size) noexcept {
  const auto block = [&] { return libc.res_send(message, length, answer, size); };
  if (length < 0) return block();
  return query(&_res, answer, size, block, [&] { return sending(message, length); });
}

}  // extern "C"
