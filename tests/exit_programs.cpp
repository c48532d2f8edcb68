// SPDX-License-Identifier: MIT
// Small programs that end in different ways; exit_test.py runs each by name and looks at what it
// printed and returned.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string_view>
#include <thread>

using namespace std::chrono_literals;

namespace {

struct announcer {
  explicit announcer(const char* text) : what(text) {}
  ~announcer() { std::printf("~%s\n", what); }
  const char* what;
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

void exit_in_fiber() {
  motet::spin([] {
    const announcer other("other");
    motet::sleep_for(1h);
  });
  motet::spin([] {
    const announcer own("own");
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
      try {
        motet::spin([] {});
      } catch (const std::logic_error& e) {
        std::printf("spin: %s\n", e.what());
      }
      std::error_code error;
      std::byte one{};
      motet::io::read(0, {&one, 1}, error);
      std::printf("read: %s\n", error ? "refused" : "granted");
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

const std::map<std::string_view, void (*)()> programs = {
    {"sleepers_are_ended", sleepers_are_ended},
    {"suspend_drains", suspend_drains},
    {"failure_is_told", failure_is_told},
    {"exit_in_fiber", exit_in_fiber},
    {"exit_below_waiting_parent", exit_below_waiting_parent},
    {"exit_while_main_awaits", exit_while_main_awaits},
    {"exit_while_main_is_runnable", exit_while_main_is_runnable},
    {"exit_in_run", exit_in_run},
    {"exit_in_main_of_run", exit_in_main_of_run},
    {"foreign_thread", foreign_thread},
    {"after_the_end", after_the_end},
    {"deadlock_is_thrown", deadlock_is_thrown},
};

}  // namespace

int main(int count, char** words) {
  const auto program = count == 2 ? programs.find(words[1]) : programs.end();
  if (program == programs.end()) return 64;
  program->second();
}
