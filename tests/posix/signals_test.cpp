// SPDX-License-Identifier: MIT
// A signal handler ends the calls of a fiber with EINTR where it ends those of a thread.
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <motet/io/signal_set.hpp>
#include <string>
#include <vector>

#include "posix/journal.hpp"

// siginterrupt(3) is called to see that it still works.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace {

using namespace testing;
using namespace std::chrono_literals;

std::atomic<int> handled{0};

void count(int) {
  ++handled;
}

void count_with_info(int number, siginfo_t* info, void* context) {
  if (info->si_signo == number && context != nullptr) ++handled;
}

/// The handler of SIGUSR1, for as long as it lives.
class usr1_handler {
 public:
  explicit usr1_handler(int flags) {
    struct sigaction action{};
    action.sa_handler = &count;
    action.sa_flags = flags;
    REQUIRE(::sigaction(SIGUSR1, &action, &previous_) == 0);
  }
  ~usr1_handler() { ::sigaction(SIGUSR1, &previous_, nullptr); }
  usr1_handler(const usr1_handler&) = delete;
  usr1_handler& operator=(const usr1_handler&) = delete;

 private:
  struct sigaction previous_{};
};

/// What the waiting calls wait for.
struct things {
  things() {
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
    REQUIRE(::pipe(pipe.data()) == 0);
    listener = motet::fd(::socket(AF_INET, SOCK_STREAM, 0));
    REQUIRE(::listen(listener.get(), 1) == 0);
    const std::string block(65'536, 'x');
    while (::send(ends[0], block.data(), block.size(), MSG_DONTWAIT) > 0) {
    }
    epoll = motet::fd(::epoll_create1(EPOLL_CLOEXEC));
    epoll_event event{EPOLLIN, {}};
    REQUIRE(::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, ends[0], &event) == 0);
    REQUIRE(::sem_init(&semaphore, 0, 0) == 0);
  }
  ~things() {
    for (const int fd : {ends[0], ends[1], pipe[0], pipe[1]}) ::close(fd);
    ::sem_destroy(&semaphore);
  }
  things(const things&) = delete;
  things& operator=(const things&) = delete;

  /// Ends the calls that a handler does not end.
  void end_calls() {
    std::string block(4'000'000, ' ');
    while (::recv(ends[1], block.data(), block.size(), MSG_DONTWAIT) > 0) {
    }
    [[maybe_unused]] ssize_t size = ::send(ends[1], "x", 1, 0);
    size = ::write(pipe[1], "x", 1);
    ::sem_post(&semaphore);
    sockaddr_in address{};
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    ::getsockname(listener.get(), generic, &length);
    const motet::fd client(::socket(AF_INET, SOCK_STREAM, 0));
    ::connect(client.get(), generic, length);
  }

  std::array<int, 2> ends{-1, -1};  // what the first sends has no room
  std::array<int, 2> pipe{-1, -1};
  motet::fd listener;
  motet::fd epoll;
  sem_t semaphore{};
};

struct waiting_call {
  const char* name;
  std::function<long(things&)> call;
};

/// A handler always ends these.
const std::vector<waiting_call> never_restarted{
    {"poll",
     [](things& with) {
       pollfd entry{with.ends[0], POLLIN, 0};
       return long{::poll(&entry, 1, 2'000)};
     }},
    {"poll of nothing", [](things&) { return long{::poll(nullptr, 0, 2'000)}; }},
    {"poll of many",
     [](things& with) {
       std::vector<pollfd> entries(20, pollfd{with.ends[0], POLLIN, 0});
       return long{::poll(entries.data(), entries.size(), 2'000)};
     }},
    {"select",
     [](things& with) {
       fd_set set{};
       FD_SET(with.ends[0], &set);
       timeval limit{2, 0};
       return long{::select(with.ends[0] + 1, &set, nullptr, nullptr, &limit)};
     }},
    {"epoll_wait",
     [](things& with) {
       epoll_event event{};
       return long{::epoll_wait(with.epoll.get(), &event, 1, 2'000)};
     }},
    {"nanosleep",
     [](things&) {
       const timespec span{2, 0};
       timespec rest{};
       const int result = ::nanosleep(&span, &rest);
       return result < 0 && rest.tv_sec == 1 ? -1L : long{result};
     }},
    {"clock_nanosleep",
     [](things&) {
       const timespec span{2, 0};
       errno = ::clock_nanosleep(CLOCK_MONOTONIC, 0, &span, nullptr);
       return errno == 0 ? 0L : -1L;
     }},
    {"usleep", [](things&) { return long{::usleep(900'000)}; }},
    {"sleep",
     [](things&) {
       errno = 0;
       return ::sleep(2) * 1'000L + errno;
     }},
    {"thrd_sleep",
     [](things&) {
       const timespec span{2, 0};
       errno = 0;
       return long{::thrd_sleep(&span, nullptr)};
     }},
    {"recv with a time limit",
     [](things& with) {
       const timeval limit{2, 0};
       ::setsockopt(with.ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
       char byte = 0;
       const long result = ::recv(with.ends[0], &byte, 1, 0);
       const int error = errno;
       const timeval none{};
       ::setsockopt(with.ends[0], SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
       errno = error;
       return result;
     }},
    {"sem_timedwait",
     [](things& with) {
       timespec limit{};
       ::clock_gettime(CLOCK_REALTIME, &limit);
       limit.tv_sec += 2;
       return long{::sem_timedwait(&with.semaphore, &limit)};
     }},
    {"sigtimedwait",
     [](things&) {
       sigset_t set{};
       ::sigemptyset(&set);
       ::sigaddset(&set, SIGUSR2);
       const timespec limit{2, 0};
       return long{::sigtimedwait(&set, nullptr, &limit)};
     }},
};

/// It ends these unless SA_RESTART was given.
const std::vector<waiting_call> restarted{
    {"read",
     [](things& with) {
       char byte = 0;
       return long{::read(with.pipe[0], &byte, 1)};
     }},
    {"recv",
     [](things& with) {
       char byte = 0;
       return long{::recv(with.ends[0], &byte, 1, 0)};
     }},
    {"send", [](things& with) { return long{::send(with.ends[0], "x", 1, 0)}; }},
    {"accept",
     [](things& with) {
       const motet::fd accepted(::accept(with.listener.get(), nullptr, nullptr));
       return accepted ? 0L : -1L;
     }},
    {"sem_wait", [](things& with) { return long{::sem_wait(&with.semaphore)}; }},
};

/// Sends a signal to the thread while it makes the call, and ends the call if that does not.
void call_and_signal(journal& log, const waiting_call& entry) {
  things with;
  const pthread_t self = ::pthread_self();
  std::atomic<bool> over{false};
  handled = 0;
  std::thread sender([&] {
    std::this_thread::sleep_for(20ms);
    ::pthread_kill(self, SIGUSR1);
    for (int i = 0; i < 100 && !over; ++i) std::this_thread::sleep_for(1ms);
    if (!over) with.end_calls();
  });
  log.call(entry.name, entry.call(with));
  over = true;
  sender.join();
  log.number("handled", handled);
}

}  // namespace

TEST_CASE("sigaction(): a handler ends the sleeps and polls of a fiber, whatever its flags") {
  for (const int flags : {0, SA_RESTART}) {
    const usr1_handler handler(flags);
    for (const waiting_call& entry : never_restarted) {
      CAPTURE(entry.name, flags);
      compare_waiting([&](journal& log) { call_and_signal(log, entry); });
    }
  }
}

TEST_CASE("sigaction(): a handler ends the transfers of a fiber, unless it has SA_RESTART") {
  for (const int flags : {0, SA_RESTART}) {
    const usr1_handler handler(flags);
    for (const waiting_call& entry : restarted) {
      CAPTURE(entry.name, flags);
      compare_waiting([&](journal& log) { call_and_signal(log, entry); });
    }
  }
}

TEST_CASE("signal() installs a handler with SA_RESTART, unless siginterrupt() was called") {
  for (const int interrupts : {0, 1}) {
    CAPTURE(interrupts);
    compare_waiting([&](journal& log) {
      const sighandler_t previous = ::signal(SIGUSR1, &count);
      log.call("siginterrupt", ::siginterrupt(SIGUSR1, interrupts));
      log.number("is ours", ::signal(SIGUSR1, &count) == &count ? 1 : 0);
      call_and_signal(log, restarted.front());
      ::siginterrupt(SIGUSR1, 0);
      ::signal(SIGUSR1, previous);
      log.call("siginterrupt", ::siginterrupt(-1, 0));
      log.number("refused", ::signal(SIGKILL, &count) == SIG_ERR ? errno : 0);
      log.number("refused", ::signal(0, &count) == SIG_ERR ? errno : 0);
    });
  }
}

TEST_CASE("sigaction() returns the program's own handler, flags and mask") {
  compare([](journal& log) {
    struct sigaction action{};
    struct sigaction previous{};
    action.sa_sigaction = &count_with_info;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
    ::sigaddset(&action.sa_mask, SIGHUP);
    log.call("sigaction", ::sigaction(SIGUSR2, &action, &previous));
    log.number("default", previous.sa_handler == SIG_DFL ? 1 : 0);
    handled = 0;
    ::raise(SIGUSR2);
    log.number("handled", handled);
    log.call("sigaction", ::sigaction(SIGUSR2, nullptr, &action));
    log.number("same", action.sa_sigaction == &count_with_info ? 1 : 0);
    log.number("flags", action.sa_flags);
    log.number("mask", ::sigismember(&action.sa_mask, SIGHUP));
    action.sa_handler = &count;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    log.call("sigaction", ::sigaction(SIGUSR2, &action, &previous));
    log.number("before", previous.sa_sigaction == &count_with_info ? 1 : 0);
    ::raise(SIGUSR2);
    log.number("handled", handled);
    log.call("sigaction", ::sigaction(SIGUSR2, nullptr, &action));
    log.number("reset", action.sa_handler == SIG_DFL ? 1 : 0);
    log.call("sigaction", ::sigaction(SIGKILL, &action, nullptr));
    log.call("sigaction", ::sigaction(1000, &action, nullptr));
    log.number("ignored", ::signal(SIGUSR2, SIG_IGN) == SIG_DFL ? 1 : 0);
    ::raise(SIGUSR2);
    log.number("was ignored", ::signal(SIGUSR2, SIG_DFL) == SIG_IGN ? 1 : 0);
  });
}

TEST_CASE("raise(): a handler that has run before a call of a fiber does not end it") {
  const usr1_handler handler(0);
  compare_waiting([](journal& log) {
    handled = 0;
    things with;
    ::raise(SIGUSR1);
    {
      const later sender([&] { with.end_calls(); });
      log.call("read", restarted.front().call(with));
    }
    log.number("handled", handled);
  });
}

TEST_CASE("pause() and sigsuspend() in a fiber wait for a handler") {
  const usr1_handler handler(SA_RESTART);
  compare_waiting([](journal& log) {
    const pthread_t self = ::pthread_self();
    handled = 0;
    {
      const later sender([&] { ::pthread_kill(self, SIGUSR1); });
      log.call("pause", ::pause());
    }
    log.number("handled", handled);
    sigset_t blocked{};
    sigset_t previous{};
    ::sigaddset(&blocked, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &blocked, &previous);
    {
      const later sender([&] { ::pthread_kill(self, SIGUSR1); });
      log.call("sigsuspend", ::sigsuspend(&previous));
    }
    log.number("handled", handled);
    ::pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  });
}

TEST_CASE("sigsuspend() in a fiber misses no handler while other fibers run") {
  const usr1_handler handler(0);
  motet::run([] {
    sigset_t none{};
    ::sigemptyset(&none);
    bool is_over = false;
    motet::fiber<void> sender = motet::spin([&] {
      while (!is_over) {
        ::usleep(2'000);
        ::raise(SIGUSR1);
      }
    });
    for (int i = 0; i < 20; ++i) {
      CHECK(::sigsuspend(&none) == -1);
      CHECK(errno == EINTR);
    }
    is_over = true;
    sender.await();
  });
}

TEST_CASE("sigaction(): a handler may end its thread") {
  const auto ends_thread = [](int) { ::pthread_exit(nullptr); };
  struct sigaction action{};
  struct sigaction previous{};
  action.sa_handler = ends_thread;
  REQUIRE(::sigaction(SIGUSR2, &action, &previous) == 0);
  std::atomic<bool> is_ready{false};
  pthread_t thread{};
  const auto wait = [](void* ready) -> void* {
    *static_cast<std::atomic<bool>*>(ready) = true;
    for (;;) ::pause();
  };
  REQUIRE(::pthread_create(&thread, nullptr, wait, &is_ready) == 0);
  while (!is_ready) std::this_thread::yield();
  CHECK(::pthread_kill(thread, SIGUSR2) == 0);
  CHECK(::pthread_join(thread, nullptr) == 0);
  ::sigaction(SIGUSR2, &previous, nullptr);
}

TEST_CASE("sigaction(): handlers that call the one before work around a signal_set") {
  static struct sigaction before{};
  static int calls = 0;
  static int outer_calls = 0;
  struct sigaction inner{};
  struct sigaction previous{};
  inner.sa_handler = [](int) { ++calls; };
  REQUIRE(::sigaction(SIGUSR2, &inner, &previous) == 0);
  motet::run([&] {
    motet::signal_set signals{SIGUSR2};
    struct sigaction outer{};
    outer.sa_handler = [](int number) {
      ++outer_calls;
      if (outer_calls < 10) before.sa_handler(number);
    };
    REQUIRE(::sigaction(SIGUSR2, &outer, &before) == 0);
    ::raise(SIGUSR2);
    CHECK(signals.next() == SIGUSR2);
    CHECK(outer_calls == 1);
  });
  struct sigaction present{};
  REQUIRE(::sigaction(SIGUSR2, nullptr, &present) == 0);
  CHECK(present.sa_handler == inner.sa_handler);
  ::raise(SIGUSR2);
  CHECK(calls == 1);
  ::sigaction(SIGUSR2, &previous, nullptr);
}

TEST_CASE("signal() restores a handler that expects a siginfo_t, which it still gets") {
  static int received = 0;
  struct sigaction informed{};
  struct sigaction previous{};
  informed.sa_sigaction = [](int number, siginfo_t* info, void*) {
    if (info->si_signo == number) ++received;
  };
  informed.sa_flags = SA_SIGINFO;
  REQUIRE(::sigaction(SIGUSR2, &informed, &previous) == 0);
  const auto old = ::signal(SIGUSR2, SIG_DFL);
  REQUIRE(old != SIG_ERR);
  REQUIRE(::signal(SIGUSR2, old) == SIG_DFL);
  ::raise(SIGUSR2);
  CHECK(received == 1);
  ::sigaction(SIGUSR2, &previous, nullptr);
}

TEST_CASE("signal() and sigaction() restore a handler that sigset(3) has replaced") {
  static int calls = 0;
  struct sigaction previous{};
  REQUIRE(::sigaction(SIGUSR2, nullptr, &previous) == 0);
  ::signal(SIGUSR2, [](int) { ++calls; });
  const auto old = ::sigset(SIGUSR2, SIG_IGN);
  ::signal(SIGUSR2, old);
  ::raise(SIGUSR2);
  CHECK(calls == 1);
  struct sigaction present{};
  ::sigset(SIGUSR2, old);
  REQUIRE(::sigaction(SIGUSR2, nullptr, &present) == 0);
  REQUIRE(::sigaction(SIGUSR2, &present, nullptr) == 0);
  ::raise(SIGUSR2);
  CHECK(calls == 2);
  ::sigaction(SIGUSR2, &previous, nullptr);
}

TEST_CASE("sigaction(): a handler gets its siginfo_t, whatever handler was there before") {
  static std::atomic<int> wrong{0};
  struct sigaction plain{};
  struct sigaction informed{};
  struct sigaction previous{};
  plain.sa_handler = [](int) {};
  informed.sa_sigaction = [](int number, siginfo_t* info, void*) {
    if (info->si_signo != number) ++wrong;
  };
  informed.sa_flags = SA_SIGINFO;
  REQUIRE(::sigaction(SIGUSR2, &plain, &previous) == 0);
  std::atomic<bool> is_over{false};
  std::thread sender([&, target = ::pthread_self()] {
    while (!is_over) ::pthread_kill(target, SIGUSR2);
  });
  for (int i = 0; i < 2'000; ++i) ::sigaction(SIGUSR2, i % 2 == 0 ? &informed : &plain, nullptr);
  is_over = true;
  sender.join();
  ::sigaction(SIGUSR2, &previous, nullptr);
  CHECK(wrong == 0);
}

TEST_CASE("sigaction(): a handler ends the calls of each fiber that waits, and none in plain()") {
  const usr1_handler handler(0);
  motet::run([&] {
    std::size_t ended = 0;
    std::vector<motet::fiber<void>> sleepers;
    for (int i = 0; i < 10; ++i) {
      sleepers.push_back(motet::spin([&] {
        if (::usleep(900'000) < 0 && errno == EINTR) ++ended;
      }));
    }
    motet::sleep_for(5ms);
    ::raise(SIGUSR1);
    const auto start = motet::clock::now();
    for (auto& sleeper : sleepers) sleeper.await();
    CHECK(ended == 10);
    CHECK(motet::clock::now() - start < 800ms);
  });
}

TEST_CASE("signal_set: a signal that motet receives does not end the calls of a fiber") {
  motet::run([&] {
    motet::signal_set signals{SIGUSR1};
    motet::fiber<void> sender = motet::spin([] {
      motet::sleep_for(5ms);
      ::raise(SIGUSR1);
    });
    CHECK(::usleep(20'000) == 0);
    CHECK(signals.next() == SIGUSR1);
  });
}

TEST_CASE("fork(): a handler ends the calls of fibers in the child as well") {
  const usr1_handler handler(0);
  motet::run([&] {
    motet::fiber<void> sleeper = motet::spin({.transient = true}, [] { ::sleep(100); });
    motet::sleep_for(2ms);
    const pid_t child = ::fork();
    if (child == 0) {
      motet::fiber<void> sender = motet::spin([] {
        motet::sleep_for(5ms);
        ::raise(SIGUSR1);
      });
      const bool ended = ::usleep(900'000) < 0 && errno == EINTR;
      ::_exit(ended ? 0 : 1);
    }
    int status = -1;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    sleeper.cancel();
  });
}
