// SPDX-License-Identifier: MIT
// Small programs that end in different ways; exit_test.py runs each by name and looks at what it
// printed and returned.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <motet/motet.hpp>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

using namespace std::chrono_literals;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_A_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UNDER_A_SANITIZER 1
#endif
#endif

namespace {

struct announcer {
  explicit announcer(const char* text) : word(text) {}
  ~announcer() { std::printf("~%s\n", word); }
  const char* word;
};

void sleepers_are_ended() {
  for (const char* name : {"first", "second", "third"}) {
    motet::spin([name] {
      const announcer local(name);
      motet::sleep_for(1h);
    });
  }
  motet::snooze();
  std::puts("main returns");
}

void suspend_drains() {
  for (int i = 1; i <= 3; ++i) {
    motet::spin([i] {
      motet::sleep_for(i * 5ms);
      std::printf("slept %d\n", i);
    });
  }
  motet::suspend();
  std::puts("main returns");
}

void failure_is_told() {
  motet::spin([] {
    try {
      motet::sleep_for(1h);
    } catch (const motet::cancelled&) {
      throw std::runtime_error("nobody awaits me");
    }
  });
  motet::snooze();
}

void failure_is_told_with_its_origin() {
  motet::spin({.name = "parent"}, [] {
    motet::spin({.name = "worker"}, [] {
      try {
        motet::sleep_for(1h);
      } catch (const motet::cancelled&) {
        throw 1;
      }
    });
    motet::sleep_for(1h);
  });
  motet::snooze();
  motet::snooze();
}

/// What is in main's frame is gone before main's locals.
void locals_of_main() {
  motet::make_local<announcer>("A");
  motet::spin([] {
    motet::make_local<announcer>("of a fiber");
    motet::sleep_for(1h);
  });
  motet::make_local<announcer>("B");
  motet::snooze();
  const announcer frame("frame");
}

/// The others' locals are ended, its own are left as its frames are.
void exit_with_locals() {
  motet::make_local<announcer>("main's");
  motet::spin([] {
    motet::make_local<announcer>("other's");
    motet::sleep_for(1h);
  });
  motet::spin([] {
    motet::make_local<announcer>("own");
    std::exit(6);
  });
  motet::suspend();
}

void exit_in_fiber() {
  motet::spin([] {
    const announcer second("other");
    motet::sleep_for(1h);
  });
  motet::spin([] {
    const announcer local("own");
    motet::spin([] {
      const announcer child("child");
      motet::sleep_for(1h);
    });
    motet::snooze();
    std::exit(7);
  });
  motet::suspend();
}

void exit_below_waiting_parent() {
  motet::spin([] {
    const announcer parent("parent");
    auto child = motet::spin([] { std::exit(5); });
    child.await();
  });
  motet::suspend();
}

void exit_while_main_awaits() {
  // Static: what is in main's frame is never destroyed.
  static auto server = motet::spin([] {
    const announcer local("server");
    motet::sleep_for(1h);
  });
  motet::spin([] { std::exit(6); });
  server.await();
  std::puts("main goes on");
}

/// Waits where it is copied, or moved, with no fiber of its own yet.
struct waits_when_copied {
  explicit waits_when_copied(motet::mutex& until_free) : gate(&until_free) {}
  waits_when_copied(const waits_when_copied& other) : gate(other.gate) {
    const std::lock_guard guard(*gate);
  }
  void operator()() const {}
  motet::mutex* gate;
};

void exit_while_main_copies_a_body() {
  static motet::mutex gate;
  motet::spin([] {
    const std::lock_guard guard(gate);
    motet::sleep_for(1ms);
    std::exit(7);
  });
  motet::spin([] {
    const announcer local("other");
    motet::sleep_for(1h);
  });
  motet::snooze();
  motet::spin(waits_when_copied(gate));
  std::puts("main goes on");
}

void exit_while_main_is_runnable() {
  motet::spin([] {
    const announcer local("slow");
    try {
      motet::sleep_for(1h);
    } catch (const motet::cancelled&) {
      motet::sleep_for(5ms);
    }
  });
  motet::spin([] {
    motet::snooze();
    std::exit(6);
  });
  for (int i = 0; i < 3; ++i) motet::snooze();
  motet::sleep_for(1ms);
  std::puts("main goes on");
}

void exit_in_run() {
  motet::run([] {
    motet::spin([] {
      const announcer local("other");
      motet::sleep_for(1h);
    });
    motet::spin([] { std::exit(6); });
    motet::suspend();
  });
}

void exit_in_main_of_run() {
  motet::run([] {
    motet::spin([] {
      const announcer local("other");
      motet::sleep_for(1h);
    });
    motet::snooze();
    std::exit(6);
  });
}

void foreign_thread() {
  std::thread([] {
    motet::spin([] {
      const announcer local("of a thread");
      motet::sleep_for(1h);
    });
    motet::snooze();
  }).join();
  std::puts("main returns");
}

void after_the_end() {
  struct last {
    ~last() {
      motet::spin([] { motet::sleep_for(1ms); }).await();
      std::puts("its fiber has ended");
      motet::spin({.transient = true}, [] {
        const announcer later{"a fiber of a static"};
        motet::sleep();
      });
      motet::snooze();
    }
  };
  static const last at_exit;
  motet::spin([] {}).await();
}

void deadlock_is_thrown() {
  auto waiter = motet::spin({.name = "Godot's friend"}, [] { motet::suspend<int>(); });
  try {
    waiter.await();
  } catch (const motet::deadlock& e) {
    std::printf("%s", e.what());
    std::exit(3);
  }
}

void tell_end_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  std::printf("the child ended with %d\n", WEXITSTATUS(status));
}

/// In the child the fiber is the main one, and the process ends with its body.
void forked_body_returns() {
  motet::spin([] {
    const announcer second("other");
    motet::sleep_for(1h);
  });
  motet::snooze();
  motet::spin([] {
    std::fflush(stdout);
    const pid_t child = ::fork();
    const announcer process(child == 0 ? "child" : "parent");
    if (child == 0) {
      motet::spin([] {
        const announcer local("of the child");
        motet::sleep_for(1h);
      });
      motet::snooze();
      return;
    }
    tell_end_of(child);
  }).await();
}

/// In the child they end with its main fiber, in the parent with the fiber.
void forked_locals() {
  motet::spin([] { motet::make_local<announcer>("another's"), motet::sleep_for(1h); });
  motet::snooze();
  motet::spin([] {
    std::fflush(stdout);
    const auto& name = motet::make_local<std::string>("local");
    motet::make_local<announcer>(name.c_str());
    const pid_t child = ::fork();
    if (child == 0) {
      motet::make_local<announcer>("child's local");
      return;
    }
    tell_end_of(child);
  }).await();
}

struct forks_when_moved {
  forks_when_moved() = default;
  forks_when_moved(forks_when_moved&& other) noexcept(false) : child(other.child) {
    std::fflush(stdout);
    *child = ::fork();
    if (*child == 0) throw std::runtime_error("not in the child");
  }
  void operator()() const {}
  pid_t* child = nullptr;
};

/// The fiber that is never made is not among those that the child's exit waits for.
void forked_while_a_body_is_moved() {
  motet::spin([] {
    pid_t child = -1;
    forks_when_moved body;
    body.child = &child;
    try {
      motet::spin(std::move(body));
    } catch (const std::runtime_error&) {
      motet::spin([] {
        const announcer local("child's");
        motet::sleep_for(1h);
      });
      motet::spin([] { std::exit(3); });
      motet::sleep_for(1h);
    }
    tell_end_of(child);
  }).await();
}

struct forks_and_goes_on {
  forks_and_goes_on() = default;
  forks_and_goes_on(forks_and_goes_on&& other) noexcept : child(other.child) {
    std::fflush(stdout);
    *child = ::fork();
  }
  void operator()() const { std::puts(*child == 0 ? "the child's body" : "the parent's body"); }
  pid_t* child = nullptr;
};

/// Made before the fork, started after it: the child's own, as everything of the caller's is.
void forked_before_a_body_is_started() {
  motet::spin([] {
    pid_t child = -1;
    forks_and_goes_on body;
    body.child = &child;
    auto handle = motet::spin(std::move(body));
    if (child != 0) tell_end_of(child);
    handle.await();
    std::puts("awaited");
    if (child == 0) std::exit(3);
  }).await();
}

struct leaves_when_moved {
  explicit leaves_when_moved(motet::thread& target) : goal(&target) {}
  leaves_when_moved(leaves_when_moved&& other) noexcept : goal(other.goal) {
    motet::teleport(*goal);
  }
  void operator()() const {}
  motet::thread* goal;
};

void teleports_while_a_body_is_moved() {
  motet::event never;
  motet::thread second([&] { never.wait(); });
  motet::spin([&] { motet::spin(leaves_when_moved(second)); }).await();
}

#if defined(UNDER_A_SANITIZER)
void overflow() {
  std::puts("a sanitizer reports it");
}
constexpr auto overflow_in_a_large_frame = overflow;
constexpr auto overflow_is_chained = overflow;
constexpr auto stacks_run_out = overflow;
constexpr auto use_after_end = overflow;
#else
/// Endless, but not to the compiler.
int recurse(int depth) {
  volatile char frame[256];
  frame[0] = static_cast<char>(depth);
  return depth < 0 ? 0 : recurse(depth + 1) + frame[0];
}

void overflow() {
  motet::spin({.name = "deep"}, [] { std::exit(recurse(1)); }).await();
}

void overflow_in_a_large_frame() {
  motet::spin({.name = "wide"}, [] {
    volatile char frame[110 * 1024];
    frame[0] = 1;
    std::exit(frame[0]);
  }).await();
}

/// Where each guard takes mappings, a clear error comes before the process runs out of them.
void stacks_run_out() {
  std::string reason;
  std::size_t live = 0;
  {
    motet::group many;
    try {
      for (;; ++live) many.spin([] { motet::sleep(); });
    } catch (const motet::stack_unavailable& refused) {
      reason = refused.what();
    }
    std::free(std::malloc(64 << 20));  // takes a mapping
  }
  motet::spin([] {}).await();
  std::printf(
      "%s, %s\n", live > 1'000 ? "many" : "few",
      reason.find("vm.max_map_count") != std::string::npos ? "a clear error" : reason.c_str());
}

/// With MOTET_DISABLE=stack_reuse what points into the stack of a fiber that has ended faults.
void use_after_end() {
  const volatile int* left_over = nullptr;
  motet::spin([&] {
    volatile int local = 1;
    left_over = &local;
    motet::snooze();
  }).await();
  std::printf("%d\n", *left_over);
}

/// The program's own handler is called after the report.
void overflow_is_chained() {
  struct sigaction local{};
  local.sa_handler = [](int) { std::_Exit(9); };
  local.sa_flags = SA_ONSTACK;
  ::sigaction(SIGSEGV, &local, nullptr);
  overflow();
}
#endif

/// Ended by its destructor, after main's runtime.
void static_thread() {
  static motet::thread worker([] {
    const announcer local("of a static thread");
    motet::sleep();
  });
  worker.call([] {});
  std::puts("main returns");
}

/// Its destructor runs on the thread itself.
void exit_on_static_thread() {
  static motet::thread worker([] {
    motet::spin([] {
      const announcer local("its other fiber");
      motet::sleep();
    });
    motet::sleep();
  });
  worker.post([] { std::exit(8); });
  for (;;) motet::sleep_for(1h);
}

void posted_job_fails() {
  motet::thread_pool pool(1);
  pool.post([] { throw std::runtime_error("a job that nobody waits for"); });
  pool.drain();
}

/// A fiber of another thread waits on what is destroyed.
void stream_destroyed_elsewhere() {
  auto ends = motet::net::stream_pair();
  std::optional end(std::move(ends.first));
  motet::thread second([&] {
    std::byte room[1];
    end->read(room);
  });
  second.call([] {});  // which runs when that fiber waits
  end.reset();
}

void thread_fails_unawaited() {
  motet::thread worker([] { throw std::runtime_error("a thread that nobody awaits"); });
}

const std::map<std::string_view, void (*)()> programs = {
    {"forked_body_returns", forked_body_returns},
    {"stream_destroyed_elsewhere", stream_destroyed_elsewhere},
    {"overflow", overflow},
    {"stacks_run_out", stacks_run_out},
    {"use_after_end", use_after_end},
    {"overflow_in_a_large_frame", overflow_in_a_large_frame},
    {"overflow_is_chained", overflow_is_chained},
    {"sleepers_are_ended", sleepers_are_ended},
    {"suspend_drains", suspend_drains},
    {"failure_is_told", failure_is_told},
    {"failure_is_told_with_its_origin", failure_is_told_with_its_origin},
    {"locals_of_main", locals_of_main},
    {"exit_with_locals", exit_with_locals},
    {"forked_locals", forked_locals},
    {"forked_while_a_body_is_moved", forked_while_a_body_is_moved},
    {"forked_before_a_body_is_started", forked_before_a_body_is_started},
    {"teleports_while_a_body_is_moved", teleports_while_a_body_is_moved},
    {"exit_in_fiber", exit_in_fiber},
    {"exit_below_waiting_parent", exit_below_waiting_parent},
    {"exit_while_main_awaits", exit_while_main_awaits},
    {"exit_while_main_copies_a_body", exit_while_main_copies_a_body},
    {"exit_while_main_is_runnable", exit_while_main_is_runnable},
    {"exit_in_run", exit_in_run},
    {"exit_in_main_of_run", exit_in_main_of_run},
    {"foreign_thread", foreign_thread},
    {"after_the_end", after_the_end},
    {"deadlock_is_thrown", deadlock_is_thrown},
    {"static_thread", static_thread},
    {"exit_on_static_thread", exit_on_static_thread},
    {"posted_job_fails", posted_job_fails},
    {"thread_fails_unawaited", thread_fails_unawaited},
};

}  // namespace

int main(int count, char** words) {
  const auto program = count == 2 ? programs.find(words[1]) : programs.end();
  if (program == programs.end()) return 64;
  program->second();
}
