// SPDX-License-Identifier: MIT
// See fetcher.hpp. handle() is the story; it reads as if nothing waited, and nobody else were
// there.
#include "fetcher.hpp"

#include <exception>
#include <stdexcept>
#include <utility>

namespace cached_fetch {

namespace {

/// A time limit that has passed: the exception says whose.
struct too_late {
  outcome::kind which;
};

/// Calls `f`; if its time is up it is this limit that is to blame, and no other.
template <typename F>
auto limited(milliseconds limit, outcome::kind which, F f) {
  try {
    return motet::with_timeout(limit, std::move(f));
  } catch (const motet::timed_out&) {
    throw too_late{which};
  }
}

nap nap_of_disk(const plan& how) {
  return how.disk_blocks ? nap::of_the_thread : nap::of_the_fiber;
}

}  // namespace

fetcher::fetcher(motet::thread_pool& cpu, motet::thread_pool& net, user_interface& ui,
                 const std::filesystem::path& directory, event_log& log)
    : cpu_(cpu),
      ui_(ui),
      log_(log),
      memory_strand_(cpu),
      disk_strand_(cpu),
      memory_(memory_strand_),
      disk_(disk_strand_, directory),
      network_(net, log) {}

request_ref fetcher::handle_key(std::string key, const plan& how) {
  auto its = std::make_shared<request>(std::move(key), how, log_);
  cpu_.post([this, its] { handle(*its); });
  return its;
}

void fetcher::handle(request& its) {
  its.fiber_ = motet::current().id();
  outcome how{outcome::kind::cancelled};
  {
    logged_life life(log_, its.key_);
    bool told = false;
    try {
      const auto value = motet::move_on_when_stopped(its.stop_.get_token(), [&] {
        std::string found = obtain(its);
        const visit there(ui_.loop());
        told = true;
        log_.add("ui", its.key_);
        ui_.on_result(its.key_, found);
        return found;
      });
      if (value) how = {outcome::kind::value, *value};
    } catch (const too_late& limit) {
      how = {limit.which};
    } catch (const motet::executor_stopped&) {
      how = {outcome::kind::ui_closed};
    } catch (const std::system_error& error) {
      how = {outcome::kind::error, error.code().message()};
    } catch (const std::exception& error) {
      how = {outcome::kind::error, error.what()};
    }
    if (!told && !tell_failure(its, how)) how = {outcome::kind::ui_closed};
    life.ends_as(describe(how));
  }
  its.promise_.set_value(std::move(how));
}

/// Returns: whether there is somebody to be told.
bool fetcher::tell_failure(const request& its, const outcome& what) {
  try {
    motet::shield([&] {
      const visit there(ui_.loop());
      log_.add("ui", its.key_, describe(what));
      ui_.on_failure(its.key_, what);
    });
    return true;
  } catch (const motet::executor_stopped&) {
    return false;
  }
}

std::string fetcher::obtain(const request& its) {
  return limited(its.how_.overall, outcome::kind::timed_out_overall, [&] {
    if (auto hit = look_up(its)) {
      ++seen_.cache_hits;
      return *std::move(hit);
    }
    std::string value = limited(its.how_.network, outcome::kind::timed_out_network,
                                [&] { return network_.get(its.key_, its.how_.server); });
    ++seen_.fetched;
    motet::shield([&] { keep(its, value); });
    motet::checkpoint();  // what has come meanwhile is thrown here
    return value;
  });
}

/// The first cache that has it ends the search in the other one.
std::optional<std::string> fetcher::look_up(const request& its) {
  const std::uint64_t self = motet::current().id();
  const auto in_memory = [&](const memory_store& store) {
    const stretch running;
    log_.add("mem_get", its.key_);
    take(its.how_.mem_get);
    if (its.how_.mem_is_broken) throw std::runtime_error("the memory is broken");
    return store.get(its.key_);
  };
  const auto on_disk = [&](const disk_store& store) {
    const stretch running;
    log_.add("disk_get", its.key_);
    take(its.how_.disk_get, nap_of_disk(its.how_));
    return store.get(its.key_);
  };
  const pause meanwhile;
  return motet::first_value(
      [&] { return get_from_cache(its, self, [&] { return memory_.call(in_memory); }); },
      [&] { return get_from_cache(its, self, [&] { return disk_.call(on_disk); }); });
}

/// A cache that fails has it not.
template <typename Get>
std::optional<std::string> fetcher::get_from_cache(const request& its, std::uint64_t parent,
                                                   Get get) {
  logged_life life(log_, its.key_, parent);
  try {
    const pause on_the_way;
    auto found = get();
    life.ends_as(found ? "hit" : "miss");
    return found;
  } catch (const std::exception&) {
    life.ends_as("failed");
    ++seen_.get_failures;
    return std::nullopt;
  }
}

void fetcher::keep(const request& its, const std::string& value) {
  const std::uint64_t self = motet::current().id();
  const auto in_memory = [&](memory_store& store) {
    const stretch running;
    log_.add("mem_set", its.key_);
    take(its.how_.mem_set);
    store.set(its.key_, value);
  };
  const auto on_disk = [&](const disk_store& store) {
    const stretch running;
    log_.add("disk_set", its.key_);
    take(its.how_.disk_set, nap_of_disk(its.how_));
    if (its.how_.disk_is_full) throw std::runtime_error("the disk is full");
    store.set(its.key_, value);
  };
  const pause meanwhile;
  motet::await_all([&] { set_in_cache(its, self, [&] { memory_.call(in_memory); }); },
                   [&] { set_in_cache(its, self, [&] { disk_.call(on_disk); }); });
}

/// A cache that fails is counted, and does not stop the other one.
template <typename Set>
void fetcher::set_in_cache(const request& its, std::uint64_t parent, Set set) {
  logged_life life(log_, its.key_, parent);
  try {
    const pause on_the_way;
    set();
    life.ends_as("kept");
  } catch (const std::exception&) {
    life.ends_as("failed");
    ++seen_.set_failures;
  }
}

std::optional<std::string> fetcher::peek_memory(const std::string& key) {
  return memory_.call([&](const memory_store& store) { return store.get(key); });
}

std::optional<std::string> fetcher::peek_disk(const std::string& key) {
  return disk_.call([&](const disk_store& store) { return store.get(key); });
}

void fetcher::put_into_memory(const std::string& key, const std::string& value) {
  memory_.call([&](memory_store& store) { store.set(key, value); });
}

void fetcher::put_onto_disk(const std::string& key, const std::string& value) {
  disk_.call([&](const disk_store& store) { store.set(key, value); });
}

}  // namespace cached_fetch
