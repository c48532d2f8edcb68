// SPDX-License-Identifier: MIT
// Handles and resumers in the hands of other threads, with and without a runtime of their own.
#include <array>
#include <atomic>
#include <deque>
#include <future>
#include <memory>
#include <motet/motet.hpp>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "quiet.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

using words = std::vector<std::string>;

struct first_error : std::runtime_error {
  first_error() : std::runtime_error("first") {}
};

/// Threads that are joined in the end; what they find out is read after that.
class strangers {
 public:
  strangers() = default;
  strangers(const strangers&) = delete;
  strangers& operator=(const strangers&) = delete;
  ~strangers() { join(); }

  template <typename F>
  void start(F function) {
    ++busy_;
    threads_.emplace_back([this, function = std::move(function)]() mutable {
      function();
      --busy_;
    });
  }
  /// Of those that have a runtime.
  template <typename F>
  void start_runtime(F function) {
    start([function = std::move(function)]() mutable { run(quiet(), function); });
  }
  /// Waits for them without keeping this thread's own fibers from what they are asked.
  void settle() {
    while (busy_ > 0) {
      snooze();
      std::this_thread::yield();
    }
    join();
  }
  void join() {
    for (std::thread& each : threads_) each.join();
    threads_.clear();
  }

  /// Virtual time runs ahead of other threads, so a thread that waits for one seems stuck.
  static options quiet() { return testing::poked<first_error>(testing::quiet()); }

 private:
  std::atomic<int> busy_{0};
  std::vector<std::thread> threads_;
};

/// Calls `function` as the main fiber of a quiet runtime, like that of a stranger.
template <typename F>
void run_here(F function) {
  run(strangers::quiet(), function);
}

/// A thread with a runtime whose main fiber offers a handle and then waits until it is dismissed.
template <typename T>
class distant {
 public:
  /// `spin_it` spins the fiber on that thread.
  template <typename F>
  explicit distant(F spin_it) {
    std::promise<fiber<T>> offer;
    auto offered = offer.get_future();
    thread_ = std::thread([this, &offer, spin_it]() mutable {
      run(strangers::quiet(), [&] {
        main_ = current();
        offer.set_value(spin_it());
        for (bool dismissed = false; !dismissed;) {
          try {
            dismissed = suspend<bool>();
          } catch (const std::exception&) {
            ++failures_;
          }
        }
      });
    });
    handle = offered.get();
  }
  distant(const distant&) = delete;
  distant& operator=(const distant&) = delete;
  ~distant() { dismiss(); }

  /// Ends the thread.
  void dismiss() {
    if (!thread_.joinable()) return;
    main_.schedule(true);
    thread_.join();
  }
  /// Returns: how many failures its main fiber was told of; after dismiss().
  int failures() const { return failures_; }

  fiber<T> handle;

 private:
  std::thread thread_;
  fiber_ref main_;
  int failures_ = 0;
};

/// What awaiting came to.
template <typename Await>
std::string outcome_of(Await await) {
  try {
    return std::to_string(await());
  } catch (const fiber_cancelled& how) {
    return how.reason();
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// Holds what is to be told to one side, till it is asked for.
template <typename T>
class box {
 public:
  void put(T item) {
    const std::lock_guard guard(lock_);
    items_.push_back(std::move(item));
  }
  std::optional<T> take() {
    const std::lock_guard guard(lock_);
    if (items_.empty()) return std::nullopt;
    std::optional<T> taken(std::move(items_.front()));
    items_.pop_front();
    return taken;
  }

 private:
  std::mutex lock_;
  std::deque<T> items_;
};

}  // namespace

TEST_CASE("a plain thread awaits a value, a failure and a cancellation", "[await]") {
  distant<int> value([] {
    return spin([] {
      sleep_for(1ms);
      return 42;
    });
  });
  distant<int> failure([] { return spin([]() -> int { throw first_error(); }); });
  distant<int> cancellation([] { return spin([]() -> int { sleep(); }); });
  CHECK(outcome_of([&] { return value.handle.await(); }) == "42");
  CHECK(outcome_of([&] { return failure.handle.await(); }) == "first");
  CHECK(cancellation.handle.cancel("from afar") == cancel_result::accepted);
  CHECK(outcome_of([&] { return cancellation.handle.await(); }) == "from afar");
  CHECK(value.handle.await() == 42);
}

TEST_CASE("a fiber awaits a value, a failure and a cancellation of another thread", "[await]") {
  run_here([] {
    distant<int> value([] {
      return spin([] {
        sleep_for(1ms);
        return 42;
      });
    });
    distant<int> failure([] {
      return spin([]() -> int {
        (void)suspend<int>();
        throw first_error();
      });
    });
    distant<int> cancellation([] { return spin([]() -> int { sleep(); }); });
    CHECK(outcome_of([&] { return value.handle.await(); }) == "42");
    failure.handle.schedule(0);
    CHECK(outcome_of([&] { return failure.handle.await(); }) == "first");
    cancellation.handle.cancel("from afar");
    CHECK(outcome_of([&] { return cancellation.handle.await(); }) == "from afar");
    CHECK(value.handle.await() == 42);
  });
}

TEST_CASE("a value can be taken abroad", "[await]") {
  distant<std::unique_ptr<int>> f([] {
    return spin([] {
      sleep_for(1ms);
      return std::make_unique<int>(9);
    });
  });
  CHECK(*std::move(f.handle).await() == 9);
  CHECK_THROWS_AS(f.handle.await(), std::logic_error);
}

TEST_CASE("other fibers run while one awaits a distant one", "[await]") {
  run_here([] {
    distant<int> f([] { return spin([] { return suspend<int>(); }); });
    int rounds = 0;
    auto scheduler = spin([&] {
      for (; rounds < 10; ++rounds) snooze();
      f.handle.schedule(3);
    });
    CHECK(f.handle.await() == 3);
    CHECK(rounds == 10);
    scheduler.await();
  });
}

TEST_CASE("many threads await one fiber, and all get its value", "[await]") {
  constexpr int threads = 8;
  constexpr int fibers = 20;
  std::atomic<int> right{0};
  run_here([&] {
    auto f = spin([] { return suspend<int>(); });
    std::atomic<int> ready{0};
    strangers all;
    for (int i = 0; i < threads; ++i) {
      all.start([&] {
        ++ready;
        right += f.await();
      });
      all.start_runtime([&] {
        group voices;
        for (int k = 0; k < fibers; ++k) voices.spin([&] { right += f.await(); });
        ++ready;
        voices.await_all();
      });
    }
    while (ready < 2 * threads) snooze();
    f.schedule(1);
    CHECK(f.await() == 1);
    all.settle();
  });
  CHECK(right == threads * (fibers + 1));
}

TEST_CASE("a failure that a distant awaiter has claimed does not go to the parent", "[await]") {
  distant<int> f([] {
    return spin([]() -> int {
      (void)suspend<int>();
      throw first_error();
    });
  });
  std::atomic<bool> waiting{false};
  std::string told;
  std::thread awaiter([&] {
    waiting = true;
    told = outcome_of([&] { return f.handle.await(); });
  });
  while (!waiting) std::this_thread::yield();
  std::this_thread::sleep_for(5ms);  // it has most likely gone to wait
  f.handle.schedule(1);
  awaiter.join();
  f.dismiss();
  CHECK(told == "first");
  CHECK(f.failures() <= 1);  // the parent, too, only if the awaiter came too late
}

TEST_CASE("raising from afar interrupts any wait", "[raise]") {
  run_here([] {
    auto ends = testing::make_pipe();
    words trace;
    const auto told = [&trace](auto wait) {
      try {
        wait();
      } catch (const first_error& error) {
        trace.emplace_back(error.what());
      }
    };
    const std::array<fiber<void>, 3> all{spin([&] { told([] { sleep(); }); }),
                                         spin([&] { told([] { (void)suspend<int>(); }); }),
                                         spin([&] {
                                           told([&] {
                                             std::array<std::byte, 1> buffer;
                                             io::read(ends.first(), buffer);
                                           });
                                         })};
    sleep_for(1ms);
    std::array<bool, 3> raised{};
    strangers others;
    others.start([&] {
      for (std::size_t i = 0; i < all.size(); ++i) raised[i] = all[i].raise(first_error());
    });
    for (const auto& each : all) each.await();
    others.join();
    CHECK(raised == std::array<bool, 3>{true, true, true});
    CHECK(trace == words{"first", "first", "first"});
  });
}

TEST_CASE("of two exceptions raised from afar one arrives first, and none twice", "[raise]") {
  run_here([] {
    for (std::size_t round = 0; round < testing::scaled(1'000, 100); ++round) {
      int told = 0;
      auto f = spin([&] {
        for (;;) {
          try {
            sleep();
          } catch (const first_error&) {
            ++told;
          }
        }
      });
      std::atomic<int> accepted{0};
      strangers others;
      for (int i = 0; i < 2; ++i) {
        others.start([&] { accepted += f.raise(first_error()) ? 1 : 0; });
      }
      while (told == 0) snooze();
      others.join();
      for (int i = 0; i < 40; ++i) snooze();
      f.cancel();
      CHECK_THROWS_AS(f.await(), fiber_cancelled);
      CHECK(told >= 1);
      CHECK(told <= accepted);
    }
  });
}

TEST_CASE("cancelling and stopping from afar is asked once", "[cancel]") {
  distant<int> f([] { return spin([]() -> int { sleep(); }); });
  distant<int> g([] { return spin([]() -> int { sleep(); }); });
  CHECK(f.handle.stop(11) == cancel_result::accepted);
  const cancel_result again = f.handle.stop(12);
  CHECK(again != cancel_result::accepted);
  CHECK(f.handle.await() == 11);
  CHECK(f.handle.cancel() == cancel_result::finished);
  CHECK(g.handle.cancel("first") == cancel_result::accepted);
  CHECK(g.handle.stop(12) != cancel_result::accepted);
  CHECK(outcome_of([&] { return g.handle.await(); }) == "first");
}

TEST_CASE("a fiber that has not started is ended from afar without running", "[cancel]") {
  run_here([] {
    bool ran = false;
    auto f = spin([&] { ran = true; });
    std::thread([&] { f.cancel("never mind"); }).join();
    // The request is there before the fiber's first turn only if the thread looks: it must, but
    // may run the fiber first. Either way awaiting tells the truth.
    try {
      f.await();
      CHECK(ran);
    } catch (const fiber_cancelled&) {
      CHECK(!ran);
    }
  });
}

TEST_CASE("a token from afar reaches suspend, in order, the last one if they meet", "[schedule]") {
  distant<std::string> f([] {
    return spin([] {
      std::string all;
      for (;;) {
        const std::string next = suspend<std::string>();
        all += next;
        if (next == ".") return all;
      }
    });
  });
  for (const char* part : {"a", "b", "c"}) CHECK(f.handle.schedule(std::string(part)));
  CHECK(f.handle.schedule(std::string(".")));
  const std::string got = f.handle.await();
  std::size_t place = 0;
  for (const char each : std::string("abc.")) {
    if (place < got.size() && got[place] == each) ++place;
  }
  CHECK(place == got.size());  // some may have been replaced, none came twice or out of order
  CHECK(got.back() == '.');
  CHECK(!f.handle.schedule(std::string("late")));
}

TEST_CASE("tokens from afar may be move-only or large, and are destroyed once", "[schedule]") {
  struct counted {
    explicit counted(std::atomic<int>& of) : alive(&of) { ++*alive; }
    counted(counted&& other) noexcept : alive(std::exchange(other.alive, nullptr)) {}
    counted& operator=(counted&&) = delete;
    ~counted() {
      if (alive != nullptr) --*alive;
    }
    std::atomic<int>* alive;
    std::array<int, 20> load{};
  };
  std::atomic<int> alive{0};
  {
    distant<int> f([] {
      return spin([] {
        const auto taken = suspend<counted>();
        return taken.alive->load() > 0 ? 1 : 0;
      });
    });
    for (int i = 0; i < 20; ++i) f.handle.schedule(counted(alive));
    CHECK(f.handle.await() == 1);
    f.handle.schedule(counted(alive));
  }
  CHECK(alive == 0);
}

TEST_CASE("a token from afar never wakes a sleep", "[schedule]") {
  distant<int> f([] {
    return spin([] {
      const auto start = clock::now();
      sleep_for(10ms);
      const bool slept = clock::now() - start >= 10ms;
      return suspend<int>() + (slept ? 1 : 0);
    });
  });
  f.handle.schedule(40);
  CHECK(f.handle.await() == 41);
}

TEST_CASE("stopping from afar loses no token that was given before", "[cancel]") {
  run_here([] {
    auto other = spin([] { sleep(); });
    auto f = spin([] {
      // The token is a handle to a fiber of the same thread: to drop it takes that thread's lock.
      const auto token = suspend<fiber_ref>();
      sleep();
      return token ? 1 : 0;
    });
    snooze();
    std::thread([&, token = fiber_ref(other)]() mutable {
      f.schedule(std::move(token));
      f.schedule(fiber_ref(other));  // displaces the first
      CHECK(f.stop(5) == cancel_result::accepted);
    }).join();
    CHECK(f.await() == 5);
    other.cancel();
  });
}

TEST_CASE("what is asked from afar happens in that order", "[cancel][resumer]") {
  run_here([] {
    std::optional<resumer<int>> answer;
    words trace;
    auto f = spin([&] {
      trace.push_back(std::to_string(
          suspend_with<int>([&](resumer<int> given) { answer.emplace(std::move(given)); })));
      try {
        sleep();
      } catch (const first_error& raised) {
        trace.emplace_back(raised.what());
      }
      suspend();
      trace.emplace_back("token");
      sleep();
    });
    snooze();
    std::thread([&] {
      (*answer)(42);
      f.raise(first_error());
    }).join();
    while (trace.size() < 2) snooze();
    snooze();
    std::thread([&] {
      f.schedule();
      f.cancel();
    }).join();
    CHECK_THROWS_AS(f.await(), fiber_cancelled);
    CHECK(trace == words{"42", "first", "token"});
  });
}

/// Sleeps when it is destroyed, and says which fiber did so and whether it had its sleep.
struct slow_to_go {
  slow_to_go(std::atomic<int>& count, fiber_ref& by) : whole_sleeps(&count), destroyer(&by) {}
  slow_to_go(slow_to_go&& other) noexcept
      : whole_sleeps(std::exchange(other.whole_sleeps, nullptr)), destroyer(other.destroyer) {}
  slow_to_go& operator=(slow_to_go&&) = delete;
  ~slow_to_go() {
    if (whole_sleeps == nullptr) return;
    *destroyer = current();
    const auto start = clock::now();
    std::error_code error;
    sleep_for(5ms);
    if (clock::now() - start >= 5ms) ++*whole_sleeps;
  }
  std::atomic<int>* whole_sleeps;
  fiber_ref* destroyer;
};

TEST_CASE("what a thread must destroy while it polls is destroyed by a fiber of its own",
          "[handle]") {
  std::atomic<int> whole_sleeps{0};
  fiber_ref destroyer;
  run_here([&] {
    auto result = spin([&] { return slow_to_go(whole_sleeps, destroyer); });
    while (result.state() != fiber_state::dead) snooze();
    const auto start = clock::now();
    std::thread dropping([result = std::move(result)]() mutable {
      std::this_thread::sleep_for(5ms);
      result = {};
    });
    sleep_for(20ms);
    CHECK(clock::now() - start >= 20ms);
    dropping.join();
    while (whole_sleeps == 0) sleep_for(1ms);
    CHECK_FALSE(destroyer == current());

    // A token that comes too late.
    destroyer = {};
    auto listener = spin([] { suspend<int>(); });
    snooze();
    std::thread([&] {
      listener.schedule(slow_to_go(whole_sleeps, destroyer));
      listener.schedule(1);
    }).join();
    listener.await();
  });
  run_here([&] {
    // One that nobody takes, found as the runtime ends.
    whole_sleeps = 0;
    auto deaf = spin([] { sleep(); });
    snooze();
    std::thread([&] { deaf.schedule(slow_to_go(whole_sleeps, destroyer)); }).join();
  });
  CHECK(whole_sleeps == 1);
  destroyer = {};
}

TEST_CASE("a result that nobody can ask for is destroyed by the fiber that returned it",
          "[handle]") {
  std::atomic<int> whole_sleeps{0};
  fiber_ref destroyer;
  run_here([&] {
    std::uint64_t id = 0;
    spin([&] {
      id = current().id();
      return slow_to_go(whole_sleeps, destroyer);
    });
    while (whole_sleeps == 0) sleep_for(1ms);
    CHECK(destroyer.id() == id);
    destroyer = {};
  });
}

TEST_CASE("the value of a stop that came too late is nobody's token", "[cancel]") {
  run_here([] {
    auto f = spin([] {
      try {
        sleep();
      } catch (const cancelled&) {
        return suspend<int>();  // a handler may wait
      }
    });
    snooze();
    f.cancel();
    snooze();
    std::thread([&] { f.stop(7); }).join();
    sleep_for(1ms);
    CHECK(f.state() == fiber_state::waiting);
    f.schedule(8);
    CHECK(f.await() == 8);
  });
}

TEST_CASE("a resumer works from another thread", "[resumer]") {
  run_here([] {
    strangers others;
    const auto later = [&others](auto value) {
      return [&others, value](resumer<decltype(value)> r) {
        others.start([r = std::move(r), value]() mutable { r(value); });
      };
    };
    CHECK(suspend_with<int>(later(5)) == 5);
    CHECK(suspend_with<std::string>(later(std::string("a longer text than fits in place"))) ==
          "a longer text than fits in place");
    std::array<int, 100> sevens{};
    sevens.fill(7);
    CHECK(suspend_with<std::array<int, 100>>(later(sevens))[99] == 7);
    suspend_with([&](resumer<void> r) { others.start([r = std::move(r)]() mutable { r(); }); });
  });
}

TEST_CASE("a resumer that is dropped on another thread breaks the wait", "[resumer]") {
  run_here([] {
    strangers others;
    CHECK_THROWS_AS(suspend_with<int>([&](resumer<int> r) { others.start([r = std::move(r)] {}); }),
                    broken_resumer);
  });
}

TEST_CASE("a resumer called twice on another thread says so", "[resumer]") {
  run_here([] {
    std::atomic<bool> refused{false};
    strangers others;
    const int got = suspend_with<int>([&](resumer<int> r) {
      others.start([&refused, r = std::move(r)]() mutable {
        r(1);
        try {
          r(2);
        } catch (const std::logic_error&) {
          refused = true;
        }
      });
    });
    others.join();
    CHECK(got == 1);
    CHECK(refused);
  });
}

TEST_CASE("a resumer called from afar after its wait was over wakes no other wait", "[resumer]") {
  run_here([] {
    std::vector<resumer<int>> kept;
    const auto keep = [&](resumer<int> r) { kept.push_back(std::move(r)); };
    auto f = spin([&] {
      CHECK_THROWS_AS(suspend_with<int>(keep), first_error);
      return suspend_with<int>(keep);
    });
    snooze();
    f.raise(first_error());
    snooze();
    REQUIRE(kept.size() == 2);
    std::thread([late = std::move(kept[0])]() mutable { late(1); }).join();
    sleep_for(1ms);
    CHECK(f.state() == fiber_state::waiting);
    std::thread([right = std::move(kept[1])]() mutable { right(2); }).join();
    CHECK(f.await() == 2);
  });
}

TEST_CASE("a resumer called from afar after its thread has ended does nothing", "[resumer]") {
  std::optional<resumer<int>> late;
  run_here([&] {
    spin([&] { (void)suspend_with<int>([&](resumer<int> r) { late.emplace(std::move(r)); }); });
    snooze();
  });
  std::thread([&] { (*late)(1); }).join();
  late.reset();
}

TEST_CASE("a suspend_with() in the callable of another one is refused", "[resumer]") {
  run_here([] {
    const int got = suspend_with<int>([](resumer<int> outer) {
      CHECK_THROWS_AS(suspend_with([](resumer<void> inner) { inner(); }), std::logic_error);
      outer(1);
    });
    CHECK(got == 1);
  });
}

TEST_CASE("a thousand waits are resumed by threads that race with the thread's sleep",
          "[resumer][stress]") {
  run_here([] {
    const auto rounds = testing::scaled(100'000, 5'000);
    box<resumer<std::size_t>> waiting;
    std::atomic<bool> over{false};
    strangers others;
    for (int i = 0; i < 2; ++i) {
      others.start([&] {
        for (std::size_t given = 1; !over;) {
          if (auto next = waiting.take()) {
            (*next)(given++);
          } else {
            std::this_thread::yield();
          }
        }
      });
    }
    std::size_t resumed = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      if (suspend_with<std::size_t>([&](resumer<std::size_t> r) { waiting.put(std::move(r)); }) >
          0) {
        ++resumed;
      }
    }
    over = true;
    others.join();
    CHECK(resumed == rounds);
  });
}

TEST_CASE("handles are copied and dropped on other threads", "[handle][stress]") {
  const auto rounds = testing::scaled(100'000, 2'000);
  run_here([&] {
    box<fiber_ref> offered;
    std::atomic<bool> over{false};
    strangers others;
    for (int i = 0; i < 3; ++i) {
      others.start([&] {
        std::vector<fiber_ref> kept;
        while (!over) {
          if (auto next = offered.take()) {
            for (int copies = 0; copies < 3; ++copies) kept.push_back(*next);
            if (kept.size() > 100) kept.clear();
          } else {
            std::this_thread::yield();
          }
        }
      });
    }
    std::size_t ran = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      auto f = spin([&] { ++ran; });
      offered.put(f);
      if (i % 2 == 0) f = {};
      snooze();
    }
    while (ran < rounds) snooze();
    over = true;
    others.join();
    CHECK(ran == rounds);
  });
}

TEST_CASE("handles dropped abroad after their thread has ended free everything", "[handle]") {
  for (int round = 0; round < 20; ++round) {
    auto destroyed = std::make_shared<std::atomic<int>>(0);
    struct result {
      std::shared_ptr<std::atomic<int>> count;
      result(std::shared_ptr<std::atomic<int>> to) : count(std::move(to)) {}
      result(result&& other) noexcept = default;
      result& operator=(result&&) = delete;
      ~result() {
        if (count != nullptr) ++*count;
      }
    };
    std::vector<fiber<result>> handles;
    run_here([&] {
      for (int i = 0; i < 10; ++i) {
        handles.push_back(spin([destroyed] { return result(destroyed); }));
      }
      for (auto& each : handles) each.await();
    });
    CHECK(*destroyed == 0);
    strangers others;
    for (int i = 0; i < 2; ++i) {
      others.start([half = std::vector<fiber<result>>(
                        std::make_move_iterator(handles.begin() + 5 * i),
                        std::make_move_iterator(handles.begin() + 5 * (i + 1)))]() mutable {
        for (auto& each : half) each.await();
        half.clear();
      });
    }
    others.join();
    CHECK(*destroyed == 10);
  }
}

TEST_CASE("after its thread has ended a handle gives the frozen result", "[handle]") {
  distant<int> value([] { return spin({.name = "alto"}, [] { return 4; }); });
  distant<int> ended([] { return spin([]() -> int { sleep(); }); });
  value.handle.await();
  value.dismiss();
  ended.dismiss();
  CHECK(value.handle.await() == 4);
  CHECK(value.handle.name() == "alto");
  CHECK(value.handle.home() != std::this_thread::get_id());
  CHECK(value.handle.children().empty());
  CHECK(value.handle.parent().state() == fiber_state::dead);
  CHECK_THROWS_AS(ended.handle.await(), fiber_cancelled);
  for (const fiber_ref& each : {fiber_ref(value.handle), fiber_ref(ended.handle)}) {
    CHECK(each.state() == fiber_state::dead);
    CHECK(!each.schedule(1));
    CHECK(!each.raise(first_error()));
    CHECK(each.cancel() == cancel_result::finished);
  }
  CHECK(ended.handle.stop(1) == cancel_result::finished);
  run_here([&] {
    CHECK(value.handle.await() == 4);
    CHECK_THROWS_AS(ended.handle.await(), fiber_cancelled);
  });
}

TEST_CASE("children can be listed only at home", "[handle]") {
  distant<int> f([] { return spin([]() -> int { sleep(); }); });
  CHECK_THROWS_AS(f.handle.children(), std::logic_error);
}

TEST_CASE("a verb on a handle starts no runtime on a thread that has none", "[handle]") {
  distant<int> f([] { return spin([] { return suspend<int>(); }); });
  std::atomic<bool> free{false};
  std::thread([&] {
    f.handle.raise(first_error());
    f.handle.schedule(1);
    try {
      f.handle.await();
    } catch (const first_error&) {
    }
    f.handle.cancel();
    run([&] { free = true; });  // refused if there were one
  }).join();
  CHECK(free);
}

TEST_CASE("an await of a distant fiber can be interrupted, and the other lives on", "[await]") {
  run_here([] {
    distant<int> f([] { return spin([] { return suspend<int>(); }); });
    auto awaiter = spin([&] {
      CHECK_THROWS_AS(f.handle.await(), first_error);
      return f.handle.await();
    });
    sleep_for(1ms);
    awaiter.raise(first_error());
    CHECK(!move_on_after(1ms, [&] { f.handle.await(); }));
    f.handle.schedule(6);
    CHECK(awaiter.await() == 6);
  });
}

TEST_CASE("the end of a distant fiber that was awaited in vain ends no other wait", "[await]") {
  run_here([] {
    distant<int> f([] { return spin([] { return suspend<int>(); }); });
    CHECK(!move_on_after(1ms, [&] { f.handle.await(); }));
    auto other = spin([] { return suspend<std::string>(); });
    snooze();
    f.handle.schedule(6);
    std::thread([&] { f.handle.await(); }).join();  // it has ended, and told whoever it should
    const auto begin = motet::clock::now();
    sleep_for(10ms);
    CHECK(motet::clock::now() - begin >= 10ms);
    other.schedule(std::string("its own"));
    CHECK(other.await() == "its own");
  });
}

TEST_CASE("an await of a distant fiber can be interrupted though that thread is stuck", "[await]") {
  run_here([] {
    auto never = spin([] { sleep(); });
    snooze();
    bool in_time = true;
    std::thread other(
        [&] { run_here([&] { in_time = move_on_after(5ms, [&] { never.await(); }); }); });
    other.join();  // this thread looks at no mail until then
    CHECK_FALSE(in_time);
    never.cancel();
    CHECK_THROWS_AS(never.await(), fiber_cancelled);
  });
}

TEST_CASE("an await that is interrupted as its fiber ends is told one of both", "[await][stress]") {
  run_here([] {
    const auto rounds = testing::scaled(10'000, 300);
    box<fiber_ref> offered;
    std::atomic<bool> over{false};
    strangers others;
    others.start_runtime([&] {
      for (std::size_t i = 0; i < rounds; ++i) {
        offered.put(spin([] { snooze(); }));
        snooze();
        if (i % 8 == 0) sleep_for(0ns);
      }
      while (!over) sleep_for(100us);
    });
    std::size_t told = 0;
    std::size_t interrupted = 0;
    while (told + interrupted < rounds) {
      const auto next = offered.take();
      if (!next) {
        snooze();
        continue;
      }
      auto awaiter = spin([&] { next->await(); });
      snooze();
      if ((told + interrupted) % 2 == 0) awaiter.raise(first_error());
      try {
        awaiter.await();
        ++told;
      } catch (const first_error&) {
        ++interrupted;
      }
    }
    over = true;
    others.join();
    CHECK(told + interrupted == rounds);
  });
}

TEST_CASE("an interruption and the awaited end that arrive together are both told", "[await]") {
  run_here([] {
    distant<int> f([] { return spin([] { return suspend<int>(); }); });
    auto awaiter = spin([&] {
      const int value = f.handle.await();
      CHECK_THROWS_AS(checkpoint(), first_error);
      return value;
    });
    snooze();
    sleep_for(1ms);  // the other thread knows that it is awaited
    // This thread looks at no mail until both are there.
    std::thread([&] { awaiter.raise(first_error()); }).join();
    std::thread([&] {
      f.handle.schedule(7);
      f.handle.await();
    }).join();
    CHECK(awaiter.await() == 7);
  });
}

TEST_CASE("two threads await each other's fibers", "[await]") {
  struct side {
    std::promise<fiber<int>> offer;
    std::shared_future<fiber<int>> handle = offer.get_future().share();
    int got = 0;
  };
  std::array<side, 2> sides;
  strangers others;
  for (std::size_t i = 0; i < 2; ++i) {
    others.start_runtime([&sides, i] {
      sides[i].offer.set_value(spin([i] {
        for (int rounds = 0; rounds < 100; ++rounds) snooze();
        return static_cast<int>(i) + 1;
      }));
      sides[i].got = sides[1 - i].handle.get().await();
      suspend();
    });
  }
  others.join();
  CHECK(sides[0].got == 2);
  CHECK(sides[1].got == 1);
}

TEST_CASE("two threads hand a token to and fro", "[schedule][stress]") {
  const auto rounds = static_cast<int>(testing::scaled(100'000, 3'000));
  distant<int> echo([rounds] {
    return spin([rounds] {
      int last = 0;
      while (last < rounds) {
        auto [number, back] = suspend<std::pair<int, fiber_ref>>();
        last = number;
        back.schedule(number);
      }
      return last;
    });
  });
  int sum = 0;
  run_here([&] {
    for (int i = 1; i <= rounds; ++i) {
      echo.handle.schedule(std::pair(i, current()));
      sum += suspend<int>() == i ? 1 : 0;
    }
  });
  CHECK(sum == rounds);
  CHECK(echo.handle.await() == rounds);
}

TEST_CASE("requests from afar meet fibers that come and go, and none is harmed", "[stress]") {
  const auto requests = testing::scaled(100'000, 4'000);
  constexpr int threads = 3;
  run_here([&] {
    box<fiber<int>> offered;
    std::atomic<std::size_t> made{0};
    std::atomic<bool> over{false};
    strangers others;
    for (int i = 0; i < threads; ++i) {
      others.start([&] {
        while (!over) {
          auto next = offered.take();
          if (!next) {
            std::this_thread::yield();
            continue;
          }
          switch (made++ % 5) {
            case 0:
              next->raise(first_error());
              break;
            case 1:
              next->schedule(1);
              break;
            case 2:
              next->cancel();
              break;
            case 3:
              next->stop(2);
              break;
            default:
              next->raise(first_error());
              next->schedule(1);
              next->cancel();
          }
          if (made % 3 == 0) offered.put(std::move(*next));
        }
      });
    }
    std::size_t ended = 0;
    std::size_t spun = 0;
    group crowd;
    while (made < requests) {
      if (crowd.size() < 50) {
        offered.put(crowd.spin([&, number = ++spun]() -> int {
          struct count {
            std::size_t& to;
            ~count() { ++to; }
          } const at_end{ended};
          try {
            switch (number % 3) {
              case 0:
                sleep_for(1ms);
                return 0;
              case 1:
                return suspend<int>();
              default:
                for (int i = 0; i < 5; ++i) snooze();
                return 0;
            }
          } catch (const first_error&) {
            return -1;
          }
        }));
      }
      try {
        snooze();
      } catch (const first_error&) {  // of one that had not started
      }
    }
    over = true;
    others.join();
    crowd.cancel();
    while (crowd.size() > 0) {
      try {
        crowd.await_all();
      } catch (const first_error&) {
      }
    }
    CHECK(ended <= spun);
    CHECK(current().children().empty());
  });
}

TEST_CASE("threads come and go while others keep their handles", "[handle][stress]") {
  const auto rounds = testing::scaled(500, 40);
  std::vector<fiber<std::size_t>> kept;
  std::mutex lock;
  for (std::size_t i = 0; i < rounds; ++i) {
    strangers others;
    for (int k = 0; k < 2; ++k) {
      others.start_runtime([&, i] {
        auto f = spin([i] {
          snooze();
          return i;
        });
        if (i % 2 == 0) suspend();
        const std::lock_guard guard(lock);
        kept.push_back(std::move(f));
      });
    }
    for (int k = 0; k < 20; ++k) {
      const std::lock_guard guard(lock);
      if (!kept.empty()) kept.back().raise(first_error());
    }
  }
  std::size_t values = 0;
  for (const auto& each : kept) {
    if (outcome_of([&] { return each.await(); }) != "first") ++values;
  }
  CHECK(kept.size() == 2 * rounds);
  CHECK(values > 0);
}

TEST_CASE("a thread sleeps without computing while it waits for another", "[await]") {
  run_here([] {
    distant<int> f([] { return spin([] { return suspend<int>(); }); });
    std::thread later([&] {
      std::this_thread::sleep_for(20ms);
      f.handle.schedule(1);
    });
    const std::clock_t before = std::clock();
    CHECK(f.handle.await() == 1);
    const double used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    later.join();
    CHECK(used < 0.01);
  });
}

TEST_CASE("awaiting another thread's main fiber ends when that runtime does", "[await][main]") {
  // On failure the awaiter is left behind, so that this test says so instead of hanging.
  for (const bool with_runtime : {false, true}) {
    auto main = std::make_shared<std::promise<fiber_ref>>();
    auto dismissed = std::make_shared<std::promise<void>>();
    auto over = std::make_shared<std::promise<void>>();
    auto ended = over->get_future();
    std::thread home([main, dismissed] {
      run(strangers::quiet(), [&] {
        main->set_value(current());
        dismissed->get_future().wait();
        snooze();
      });
    });
    auto handle = main->get_future().get();
    std::thread awaiter([over, with_runtime, handle] {
      const auto await = [&] { handle.await(); };
      if (with_runtime) {
        run(strangers::quiet(), await);
      } else {
        await();
      }
      over->set_value();
    });
    std::this_thread::sleep_for(10ms);
    dismissed->set_value();
    home.join();
    const bool told = ended.wait_for(2s) == std::future_status::ready;
    CHECK(told);
    if (told) {
      awaiter.join();
    } else {
      awaiter.detach();
    }
  }
}

TEST_CASE("a failure that another thread awaits is not its parent's as well", "[await]") {
  run(strangers::quiet(), [] {
    event go;
    promise<fiber_ref> made;
    std::atomic<bool> parent_told{false};
    thread other(strangers::quiet(), [&] {
      const auto child = spin([&] {
        go.wait();
        throw first_error();
      });
      made.set_value(child);
      try {
        sleep();
      } catch (const first_error&) {
        parent_told = true;
      }
    });
    const fiber_ref failing = made.get_future().get();
    auto awaiting = spin([&] { CHECK_THROWS_AS(failing.await(), first_error); });
    other.call([] {});  // there and back: the wait has begun there
    other.call([] {});
    go.set();
    awaiting.await();
    other.cancel();
    CHECK_THROWS_AS(other.await(), fiber_cancelled);
    CHECK_FALSE(parent_told);
  });
}
