// SPDX-License-Identifier: MIT
// A process that ends, by each way, from each place: exit_table_test.py runs `exit_table PLACE WAY`
// and looks at what it returned and which locals it has destroyed.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <motet/motet.hpp>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

using namespace std::chrono_literals;

namespace {

/// What the place does; with the last two it waits, while main returns, or calls exit().
enum class way { exit, quick_exit, failure, main_returns, main_exits };
way exit_way;

/// The place has been reached, and everything else is where it should be.
std::atomic<bool> arrived{false};
/// Main does not look any more: it hears of nothing.
std::atomic<bool> main_ends{false};

void await(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::sleep_for(1ms);
}

/// Not through stdio, which quick_exit() does not flush, and exit() flushes while others print.
struct announcer {
  explicit announcer(const char* text) : name(text) {}
  announcer(const announcer&) = delete;
  announcer& operator=(const announcer&) = delete;
  ~announcer() {
    const std::string line = std::string("~") + name + "\n";
    if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) std::abort();
  }
  const char* name;
};

/// Another fiber of the thread that the place is on.
void another() {
  const announcer local("another");
  motet::sleep();
}

void end_or(const std::function<void()>& wait) {
  arrived = true;
  if (exit_way == way::exit) std::exit(7);
  if (exit_way == way::quick_exit) std::quick_exit(7);
  wait();
  if (exit_way == way::failure) throw std::runtime_error("heard by nobody");
}

/// A failure comes when nobody but the place is left to hear of it.
void end_in_fiber() {
  const announcer local("own");
  end_or([] {
    try {
      motet::sleep();
    } catch (const motet::cancelled&) {
      if (exit_way != way::failure) throw;
    }
  });
}

void end_beside_another() {
  motet::spin(another);
  motet::snooze();
  end_in_fiber();
}

/// Where there is no fiber that could wait: until main is about to end, and a little longer.
void end_busy() {
  const announcer local("own");
  end_or([] {
    await(main_ends);
    if (exit_way != way::failure) std::this_thread::sleep_for(10ms);
  });
}

void end_beside_another_busy() {
  motet::spin(another);
  motet::snooze();
  end_busy();
}

void end_when_asked(const std::stop_token& token) {
  const announcer local("own");
  end_or([&] {
    while (!token.stop_requested()) std::this_thread::sleep_for(1ms);
  });
}

/// Main, in the meantime. A wait of its own would hear of a failure.
void end_main() {
  if (exit_way == way::exit || exit_way == way::quick_exit) {
    for (;;) motet::sleep_for(1h);
  }
  while (!arrived) motet::sleep_for(1ms);
  main_ends = true;
  if (exit_way == way::main_exits) std::exit(6);
}

void main_itself() {
  motet::spin(another);
  motet::snooze();
  const announcer local("own");
  end_or([] {});
  if (exit_way == way::main_exits) std::exit(6);
}

void in_run() {
  motet::run(main_itself);
}

void spun() {
  motet::spin(another);
  motet::spin(end_in_fiber);
  end_main();
}

void spun_in_run() {
  motet::run(spun);
}

void wait_beside_another() {
  motet::spin(another);
  motet::sleep();
}

void posted() {
  motet::thread worker(wait_beside_another);
  worker.post(end_in_fiber);
  end_main();
}

void called() {
  motet::thread worker(wait_beside_another);
  motet::group callers;
  callers.spin([&] { worker.call(end_in_fiber); });
  end_main();
}

void pool_job() {
  motet::thread_pool pool(2);
  pool.post(end_beside_another_busy);
  end_main();
}

void thread_function() {
  const motet::thread worker([] { end_beside_another(); });
  end_main();
}

/// Of a thread that is joined when it fails, and else left alone.
void on_plain_thread(void (*function)()) {
  std::thread plain(function);
  if (exit_way == way::failure) {
    main_ends = true;
    plain.join();
  } else {
    plain.detach();
    end_main();
  }
}

void plain_thread() {
  on_plain_thread(end_busy);
}

void fiber_of_plain_thread() {
  on_plain_thread([] {
    motet::spin(another);
    motet::spin(end_in_fiber);
    motet::snooze();
    if (exit_way != way::failure) motet::sleep();
  });
}

void main_of_plain_thread() {
  on_plain_thread(end_beside_another_busy);
}

void offloaded() {
  motet::spin(another);
  motet::spin([] { motet::offload(end_when_asked); });
  end_main();
}

void offloaded_with_fibers() {
  motet::spin([] {
    motet::offload([](const std::stop_token& token) {
      motet::spin(another);
      motet::snooze();
      end_when_asked(token);
    });
  });
  end_main();
}

void offloaded_and_owned() {
  motet::spin([] { motet::offload_owned(end_when_asked); });
  end_main();
}

/// Left by its caller before it ends the process, or fails.
void abandoned() {
  static std::atomic<bool> started{false};
  const auto caller = motet::spin([] {
    motet::offload_owned([](const std::stop_token& token) {
      started = true;
      while (!token.stop_requested()) std::this_thread::sleep_for(1ms);
      end_busy();
    });
  });
  while (!started) motet::sleep_for(1ms);
  caller.cancel();
  end_main();
}

void abroad() {
  motet::thread worker(wait_beside_another);
  motet::spin([&] {
    motet::teleport(worker);
    end_in_fiber();
  });
  end_main();
}

/// An event loop that is none of motet's.
class foreign_loop {
 public:
  foreign_loop() = default;
  foreign_loop(const foreign_loop&) = delete;
  foreign_loop& operator=(const foreign_loop&) = delete;
  void post(std::function<void()> f) {
    const std::lock_guard guard(lock_);
    functions_.push_back(std::move(f));
    condition_.notify_one();
  }

 private:
  void serve() {
    for (;;) {
      std::unique_lock guard(lock_);
      condition_.wait(guard, [this] { return !functions_.empty(); });
      const std::function<void()> next = std::move(functions_.front());
      functions_.pop_front();
      guard.unlock();
      next();
    }
  }

  std::mutex lock_;
  std::condition_variable condition_;
  std::deque<std::function<void()>> functions_;
  std::thread runs_{[this] { serve(); }};
};

/// Never destroyed: its thread may be the one that exits.
void on_foreign_loop() {
  static foreign_loop& loop = *new foreign_loop;
  motet::spin(another);
  motet::spin([] {
    motet::teleport(loop);
    end_busy();
  });
  end_main();
}

const std::map<std::string_view, void (*)()> places = {
    {"main", main_itself},
    {"run", in_run},
    {"spun", spun},
    {"spun in run", spun_in_run},
    {"posted", posted},
    {"called", called},
    {"pool", pool_job},
    {"thread", thread_function},
    {"plain thread", plain_thread},
    {"main fiber of a plain thread", main_of_plain_thread},
    {"fiber of a plain thread", fiber_of_plain_thread},
    {"offloaded", offloaded},
    {"offloaded with fibers", offloaded_with_fibers},
    {"offloaded and owned", offloaded_and_owned},
    {"abandoned", abandoned},
    {"abroad", abroad},
    {"foreign loop", on_foreign_loop},
};

const std::map<std::string_view, way> ways = {
    {"exit", way::exit},
    {"quick_exit", way::quick_exit},
    {"failure", way::failure},
    {"main returns", way::main_returns},
    {"main exits", way::main_exits},
};

}  // namespace

int main(int count, char** words) {
  const auto place = count == 3 ? places.find(words[1]) : places.end();
  const auto entry = count == 3 ? ways.find(words[2]) : ways.end();
  if (place == places.end() || entry == ways.end()) return 64;
  exit_way = entry->second;
  place->second();
}
