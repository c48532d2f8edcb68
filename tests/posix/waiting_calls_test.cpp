// SPDX-License-Identifier: MIT
// Calls in a fiber that wait for child processes, for locks of files and for signals have the
// results that they have on a thread.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "posix/journal.hpp"

namespace {

using namespace testing;
using namespace std::chrono_literals;

/// A child that ends after 20 ms. vfork(2) and fork(2) would stop the other threads.
pid_t child_with(const char* script) {
  const std::array<char*, 4> arguments{const_cast<char*>("sh"), const_cast<char*>("-c"),
                                       const_cast<char*>(script), nullptr};
  pid_t child = -1;
  REQUIRE(::posix_spawn(&child, "/bin/sh", nullptr, nullptr, arguments.data(), environ) == 0);
  return child;
}

std::string end_of(int status) {
  return WIFEXITED(status) ? "exit " + std::to_string(WEXITSTATUS(status))
                           : "signal " + std::to_string(WTERMSIG(status));
}

/// A file without a name, opened twice: flock(2) knows two owners.
struct file_twice {
  file_twice() {
    std::string path = "/tmp/motet-posix-XXXXXX";
    first = motet::fd(::mkostemp(path.data(), O_CLOEXEC));
    second = motet::fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    ::unlink(path.c_str());
    REQUIRE(first);
    REQUIRE(second);
  }
  motet::fd first;
  motet::fd second;
};

struct flock whole_file(short kind) {
  struct flock range{};
  range.l_type = kind;
  range.l_whence = SEEK_SET;
  return range;
}

}  // namespace

TEST_CASE("waitpid() in a fiber waits for the end of a child") {
  compare_waiting([](journal& log) {
    int status = 0;
    pid_t child = child_with("sleep 0.02; exit 3");
    log.number("found", ::waitpid(child, &status, WNOHANG));
    log.number("child", ::waitpid(child, &status, 0) == child ? 1 : 0);
    log.text("status", end_of(status));
    log.call("waitpid", ::waitpid(child, &status, 0));
    child = child_with("sleep 0.02; kill -TERM $$");
    rusage usage{};
    log.number("child", ::wait4(child, &status, 0, &usage) == child ? 1 : 0);
    log.text("status", end_of(status));
    log.number("memory", usage.ru_maxrss > 0 ? 1 : 0);
    log.call("waitpid", ::waitpid(child, &status, 12'345));
  });
}

TEST_CASE("wait() and wait3() in a fiber wait for any child") {
  compare_waiting([](journal& log) {
    int status = 0;
    const pid_t slow = child_with("sleep 0.2; exit 1");
    const pid_t quick = child_with("sleep 0.02; exit 2");
    log.number("quick", ::wait(&status) == quick ? 1 : 0);
    log.text("status", end_of(status));
    log.number("slow", ::wait3(&status, 0, nullptr) == slow ? 1 : 0);
    log.text("status", end_of(status));
    log.call("wait", ::wait(&status));
  });
}

TEST_CASE("waitpid() in a fiber reports a child that has stopped") {
  compare_waiting([](journal& log) {
    int status = 0;
    const pid_t child = child_with("sleep 0.02; kill -STOP $$; exit 5");
    log.number("child", ::waitpid(child, &status, WUNTRACED) == child ? 1 : 0);
    log.number("stopped", WIFSTOPPED(status) ? 1 : 0);
    ::kill(child, SIGCONT);
    log.number("child", ::waitpid(child, &status, 0) == child ? 1 : 0);
    log.text("status", end_of(status));
  });
}

TEST_CASE("waitid() in a fiber waits by number and by pidfd, and may leave the child") {
  compare_waiting([](journal& log) {
    siginfo_t info{};
    pid_t child = child_with("sleep 0.02; exit 4");
    log.call("waitid", ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT));
    log.number("child", info.si_pid == child ? 1 : 0);
    log.number("status", info.si_status);
    log.call("waitid", ::waitid(P_PID, static_cast<id_t>(child), nullptr, WEXITED));
    log.call("waitid", ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED));
    child = child_with("sleep 0.02; exit 6");
    const motet::fd end(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    log.call("waitid", ::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(end.get()), &info,
                                WEXITED));
    log.number("status", info.si_status);
    child = child_with("sleep 0.02; exit 7");
    log.call("waitid", ::waitid(P_ALL, 0, &info, WEXITED));
    log.number("child", info.si_pid == child ? 1 : 0);
    log.call("waitid", ::waitid(P_ALL, 0, &info, 0));
  });
}

TEST_CASE("flock() in a fiber waits until the lock is free") {
  compare_waiting([](journal& log) {
    const file_twice file;
    log.call("flock", ::flock(file.first.get(), LOCK_EX));
    log.call("flock", ::flock(file.second.get(), LOCK_SH | LOCK_NB));
    {
      const later release([&] { ::flock(file.first.get(), LOCK_UN); });
      log.call("flock", ::flock(file.second.get(), LOCK_SH));
    }
    log.call("flock", ::flock(file.first.get(), LOCK_SH));
    log.call("flock", ::flock(-1, LOCK_SH));
    log.call("flock", ::flock(file.first.get(), 77));
  });
}

TEST_CASE("fcntl() in a fiber waits for a lock of an open file description") {
  compare_waiting([](journal& log) {
    const file_twice file;
    struct flock range = whole_file(F_WRLCK);
    log.call("fcntl", ::fcntl(file.first.get(), F_OFD_SETLKW, &range));
    log.call("fcntl", ::fcntl(file.second.get(), F_OFD_SETLK, &range));
    {
      const later release([&] {
        struct flock none = whole_file(F_UNLCK);
        ::fcntl(file.first.get(), F_OFD_SETLK, &none);
      });
      log.call("fcntl", ::fcntl(file.second.get(), F_OFD_SETLKW, &range));
    }
    range.l_whence = 99;
    log.call("fcntl", ::fcntl(file.second.get(), F_OFD_SETLKW, &range));
    log.call("fcntl", ::fcntl(file.second.get(), F_GETFD));
    log.call("fcntl", ::fcntl(file.second.get(), F_SETFD, 0));
    log.call("fcntl", ::fcntl(file.second.get(), F_GETFD));
  });
}

TEST_CASE("fcntl() and lockf() in a fiber wait for another process's lock") {
  const auto with_other_process = [](journal& log, const auto& lock) {
    const file_twice file;
    std::array<int, 2> ends{-1, -1};
    REQUIRE(::pipe(ends.data()) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      struct flock range = whole_file(F_WRLCK);
      ::fcntl(file.first.get(), F_SETLK, &range);
      [[maybe_unused]] const ssize_t size = ::write(ends[1], "x", 1);
      const timespec span{0, 30'000'000};
      ::nanosleep(&span, nullptr);
      ::_exit(0);
    }
    char byte = 0;
    REQUIRE(::read(ends[0], &byte, 1) == 1);
    log.call("lock", lock(file.first.get()));
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    for (const int end : ends) ::close(end);
  };
  compare_waiting([&](journal& log) {
    with_other_process(log, [](int fd) { return ::lockf(fd, F_LOCK, 0); });
    with_other_process(log, [](int fd) {
      struct flock range = whole_file(F_RDLCK);
      return ::fcntl(fd, F_SETLKW, &range);
    });
  });
}

TEST_CASE("sigwait() and sigtimedwait() in a fiber wait for a signal of their set") {
  compare_waiting([](journal& log) {
    sigset_t set{};
    sigset_t previous{};
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGUSR1);
    ::sigaddset(&set, SIGUSR2);
    ::pthread_sigmask(SIG_BLOCK, &set, &previous);
    const pthread_t self = ::pthread_self();
    const timespec limit{0, 20'000'000};
    siginfo_t info{};
    log.call("sigtimedwait", ::sigtimedwait(&set, &info, &limit));
    int number = 0;
    {
      const later sender([&] { ::pthread_kill(self, SIGUSR1); });
      log.call("sigwait", ::sigwait(&set, &number));
    }
    log.number("number", number);
    {
      const later sender([&] { ::pthread_sigqueue(self, SIGUSR2, sigval{.sival_int = 42}); });
      log.call("sigwaitinfo", ::sigwaitinfo(&set, &info));
    }
    log.number("value", info.si_value.sival_int);
    ::pthread_kill(self, SIGUSR2);
    log.call("sigtimedwait", ::sigtimedwait(&set, nullptr, &limit));
    const timespec wrong{0, -1};
    log.call("sigtimedwait", ::sigtimedwait(&set, nullptr, &wrong));
    ::pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  });
}

TEST_CASE("pthread_join() in a fiber waits for the thread, within a limit") {
  compare_waiting([](journal& log) {
    const auto pause = [](void* argument) -> void* {
      std::this_thread::sleep_for(30ms);
      return argument;
    };
    int value = 7;
    void* result = nullptr;
    pthread_t thread{};
    REQUIRE(::pthread_create(&thread, nullptr, pause, &value) == 0);
    log.call("join", ::pthread_join(thread, &result));
    log.number("result", result == &value ? 1 : 0);
    timespec limit{};
#if !defined(MOTET_TSAN)  // which does not know this function
    REQUIRE(::pthread_create(&thread, nullptr, pause, &value) == 0);
    ::clock_gettime(CLOCK_MONOTONIC, &limit);
    log.call("join", ::pthread_clockjoin_np(thread, nullptr, CLOCK_MONOTONIC, &limit));
    limit.tv_sec += 100;
    log.call("join", ::pthread_clockjoin_np(thread, nullptr, CLOCK_MONOTONIC, &limit));
#endif
    REQUIRE(::pthread_create(&thread, nullptr, pause, &value) == 0);
    ::clock_gettime(CLOCK_REALTIME, &limit);
    log.call("join", ::pthread_timedjoin_np(thread, nullptr, &limit));
    log.call("join", ::pthread_join(thread, nullptr));
    thrd_t other{};
    int status = 0;
    REQUIRE(::thrd_create(&other, [](void*) { return -5; }, nullptr) == thrd_success);
    log.call("join", ::thrd_join(other, &status));
    log.number("status", status);
#if !defined(MOTET_ASAN) && !defined(MOTET_TSAN)  // which end the program
    log.call("join", ::pthread_join(::pthread_self(), nullptr));
#endif
  });
}

TEST_CASE("pthread_join() in a fiber is not ended by a time limit") {
  motet::run([] {
    CHECK(!motet::move_on_after(5ms, [] {
      std::thread slow([] { std::this_thread::sleep_for(40ms); });
      const auto start = std::chrono::steady_clock::now();
      slow.join();
      CHECK(std::chrono::steady_clock::now() - start >= 30ms);
      motet::snooze();
    }));
  });
}

TEST_CASE("open() in a fiber waits for the other end of a FIFO") {
  const std::string path = "/tmp/motet-posix-fifo-" + std::to_string(::getpid());
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  compare_waiting([&](journal& log) {
    char byte = 0;
    {
      const later writer([&] {
        const motet::fd end(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
        CHECK(::write(end.get(), "x", 1) == 1);
      });
      const motet::fd reader(::open(path.c_str(), O_RDONLY));
      log.number("closes on exec", ::fcntl(reader.get(), F_GETFD));
      log.call("read", ::read(reader.get(), &byte, 1));
    }
    {
      const later reader([&] {
        const motet::fd end(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        char other = 0;
        CHECK(::read(end.get(), &other, 1) == 1);
      });
      const motet::fd directory(::open("/tmp", O_PATH | O_DIRECTORY));
      const motet::fd writer(::openat(directory.get(), path.c_str() + 5, O_WRONLY | O_CLOEXEC));
      log.number("closes on exec", ::fcntl(writer.get(), F_GETFD));
      log.call("write", ::write(writer.get(), "x", 1));
    }
    log.call("open", ::open(path.c_str(), O_WRONLY | O_NONBLOCK));
    log.call("open", ::open("/no/such/file", O_RDONLY));
    const motet::fd made(::open("/tmp", O_TMPFILE | O_RDWR, 0640));
    struct stat status{};
    log.call("fstat", ::fstat(made.get(), &status));
    log.number("mode", status.st_mode);
  });
  motet::run([&] {
    CHECK(!motet::move_on_after(20ms, [&] {
      CHECK(::open(path.c_str(), O_RDONLY) == -1);
      CHECK(errno == ECANCELED);
      motet::sleep();
    }));
    // The call that was left behind ends, and closes what it has opened.
    const motet::fd writer(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    CHECK(writer);
    const auto start = std::chrono::steady_clock::now();
    pollfd entry{writer.get(), POLLERR, 0};
    while (::poll(&entry, 1, 10) == 0 && std::chrono::steady_clock::now() - start < 5s) {
    }
    CHECK((entry.revents & POLLERR) != 0);
  });
  ::unlink(path.c_str());
}

TEST_CASE("system() in a fiber waits for the command") {
  compare_waiting([](journal& log) {
    log.text("status", end_of(::system("sleep 0.02; exit 9")));
    log.text("status", end_of(::system("kill -TERM $$")));
    log.number("there is a shell", ::system(nullptr));
  });
}

TEST_CASE("sem_wait() in a fiber waits for a thread, a fiber, and no longer than its limit") {
  compare_waiting([](journal& log) {
    sem_t semaphore{};
    REQUIRE(::sem_init(&semaphore, 0, 1) == 0);
    log.call("sem_wait", ::sem_wait(&semaphore));
    {
      const later poster([&] { ::sem_post(&semaphore); });
      log.call("sem_wait", ::sem_wait(&semaphore));
    }
    timespec limit{};
    ::clock_gettime(CLOCK_REALTIME, &limit);
    log.call("sem_timedwait", ::sem_timedwait(&semaphore, &limit));
    ::clock_gettime(CLOCK_MONOTONIC, &limit);
    limit.tv_nsec += 20'000'000;
    if (limit.tv_nsec >= 1'000'000'000) limit = {limit.tv_sec + 1, limit.tv_nsec - 1'000'000'000};
    log.call("sem_clockwait", ::sem_clockwait(&semaphore, CLOCK_MONOTONIC, &limit));
    limit.tv_nsec = -1;
    log.call("sem_clockwait", ::sem_clockwait(&semaphore, CLOCK_MONOTONIC, &limit));
    ::sem_destroy(&semaphore);
  });
  motet::run([] {
    sem_t semaphore{};
    REQUIRE(::sem_init(&semaphore, 0, 0) == 0);
    motet::fiber<void> poster = motet::spin([&] { ::sem_post(&semaphore); });
    CHECK(::sem_wait(&semaphore) == 0);
    poster.await();
    CHECK(!motet::move_on_after(10ms, [&] {
      CHECK(::sem_wait(&semaphore) == -1);
      CHECK(errno == ECANCELED);
      motet::sleep();
    }));
    ::sem_destroy(&semaphore);
  });
}

TEST_CASE("motet-posix: a time limit ends waits for children, locks and signals") {
  const file_twice file;
  REQUIRE(::flock(file.first.get(), LOCK_EX) == 0);
  sigset_t none{};
  ::sigemptyset(&none);
  const std::vector<std::function<int()>> calls{
      [] { return ::waitpid(-1, nullptr, 0); },
      [] { return ::wait(nullptr); },
      [&] { return ::flock(file.second.get(), LOCK_EX); },
      [&] { return ::sigwaitinfo(&none, nullptr); },
  };
  motet::run([&] {
    const pid_t child = child_with("exec sleep 10");
    for (const auto& call : calls) {
      CHECK(!motet::move_on_after(20ms, [&] {
        CHECK(call() == -1);
        CHECK(errno == ECANCELED);
        motet::sleep();
      }));
    }
    CHECK(!motet::move_on_after(20ms, [&] {
      CHECK(::waitpid(child, nullptr, 0) == -1);
      CHECK(errno == ECANCELED);
      motet::sleep();
    }));
    ::kill(child, SIGKILL);
    CHECK(::waitpid(child, nullptr, 0) == child);
  });
}
