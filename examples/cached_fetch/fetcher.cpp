// SPDX-License-Identifier: MIT
// A request is one fiber, which handle() and obtain() tell from its beginning to its end. The fiber
// moves from thread to thread on the way.
#include "fetcher.hpp"

#include <exception>
#include <utility>

namespace cached_fetch {

namespace {

using std::chrono::milliseconds;

/// Says which of two nested time limits has expired.
struct too_late {
  outcome::kind limit;
};

template <typename F>
auto limited(milliseconds length, outcome::kind limit, F f) {
  try {
    return motet::with_timeout(length, std::move(f));
  } catch (const motet::timed_out&) {
    throw too_late{limit};
  }
}

/// A cache that fails has no value.
std::optional<std::string> search(cache& place, const std::string& key) {
  try {
    return place.get(key);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// The user gets a value even if a cache cannot keep it.
void try_to_set(cache& place, const std::string& key, const std::string& value) {
  try {
    place.set(key, value);
  } catch (const std::exception&) {
  }
}

}  // namespace

outcome fetcher::handle(const request& wish) {
  outcome failure{outcome::kind::cancelled};
  try {
    const auto success = motet::move_on_when_stopped(wish.stop, [&] {
      outcome result{outcome::kind::value, obtain(wish)};
      const motet::portal to_user(user_);  // from here on, this fiber runs on the user's thread
      user_.show(wish.key, result);
      return result;
    });
    if (success) return *success;
  } catch (const too_late& expired) {
    failure = {expired.limit};
  } catch (const motet::executor_stopped&) {
    return {outcome::kind::ui_closed};
  } catch (const std::system_error& error) {
    failure = {outcome::kind::error, error.code().message()};
  } catch (const std::exception& error) {
    failure = {outcome::kind::error, error.what()};
  }
  return show_failure(wish.key, failure);
}

std::string fetcher::obtain(const request& wish) {
  return limited(wish.overall_limit, outcome::kind::timed_out_overall, [&] {
    // Two fibers: the first value cancels the other search.
    auto hit = motet::first_value([&] { return search(memory_, wish.key); },
                                  [&] { return search(disk_, wish.key); });
    if (hit) return *hit;
    std::string value = limited(wish.network_limit, outcome::kind::timed_out_network,
                                [&] { return download(wish.key); });
    motet::shield([&] { store(wish.key, value); });  // in both caches or in none
    motet::checkpoint();                             // throws what the shield has held back
    return value;
  });
}

std::string fetcher::download(const std::string& key) {
  const motet::portal to_network(sockets_);
  return server_.get(key);
}

void fetcher::store(const std::string& key, const std::string& value) {
  motet::await_all([&] { try_to_set(memory_, key, value); },
                   [&] { try_to_set(disk_, key, value); });
}

/// The shield lets a cancelled request still reach the user.
outcome fetcher::show_failure(const std::string& key, const outcome& failure) {
  try {
    motet::shield([&] {
      const motet::portal to_user(user_);
      user_.show(key, failure);
    });
    return failure;
  } catch (const motet::executor_stopped&) {
    return {outcome::kind::ui_closed};
  }
}

}  // namespace cached_fetch
