// SPDX-License-Identifier: MIT
// poll(2), select(2) and epoll_wait(2) in a fiber report what they report on a thread.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "posix/journal.hpp"

namespace {

using namespace testing;
using namespace std::chrono_literals;

struct pipe_ends {
  pipe_ends() {
    std::array<int, 2> ends{-1, -1};
    REQUIRE(::pipe(ends.data()) == 0);
    reader = motet::fd(ends[0]);
    writer = motet::fd(ends[1]);
  }
  void put() const { REQUIRE(::write(writer.get(), "x", 1) == 1); }
  motet::fd reader;
  motet::fd writer;
};

void note_events(journal& log, const std::vector<pollfd>& entries) {
  for (const pollfd& entry : entries) log.number("events", entry.revents);
}

bool took(std::chrono::steady_clock::time_point start, std::chrono::milliseconds span) {
  const auto time = std::chrono::steady_clock::now() - start;
  return time >= span && time < span + 400ms;
}

}  // namespace

TEST_CASE("poll() in a fiber waits for the first of its descriptors, and for its time") {
  for (const std::size_t count : {1U, 3U, 8U, 9U, 40U}) {
    CAPTURE(count);
    compare_waiting([&](journal& log) {
      std::vector<pipe_ends> pipes(count);
      std::vector<pollfd> entries;
      for (const pipe_ends& ends : pipes) entries.push_back({ends.reader.get(), POLLIN, 0});
      log.call("poll", ::poll(entries.data(), count, 0));
      const auto start = std::chrono::steady_clock::now();
      log.call("poll", ::poll(entries.data(), count, 15));
      log.number("in time", took(start, 15ms) ? 1 : 0);
      {
        const later writer([&] { pipes.back().put(); });
        log.call("poll", ::poll(entries.data(), count, -1));
      }
      note_events(log, entries);
      log.call("poll", ::poll(entries.data(), count, 1000));
      pipes.front().writer.close();
      log.call("poll", ::poll(entries.data(), count, -1));
      note_events(log, entries);
    });
  }
}

TEST_CASE("poll() in a fiber with unusual entries") {
  compare_waiting([](journal& log) {
    pipe_ends ends;
    std::vector<pollfd> entries{
        {-1, POLLIN, 0}, {ends.reader.get(), 0, 0}, {ends.writer.get(), POLLIN, 0}};
    log.call("poll", ::poll(entries.data(), entries.size(), 15));
    note_events(log, entries);
    log.call("poll", ::poll(nullptr, 0, 15));
    entries.push_back({9'999, POLLIN, 0});
    log.call("poll", ::poll(entries.data(), entries.size(), -1));
    note_events(log, entries);
    entries.pop_back();
    {
      const later closer([&] { ends.writer.close(); });
      entries.pop_back();
      log.call("poll", ::poll(entries.data(), entries.size(), -1));
    }
    note_events(log, entries);
    entries.assign(2, {ends.reader.get(), POLLIN, 0});
    log.call("poll", ::poll(entries.data(), entries.size(), -1));
    note_events(log, entries);
  });
}

TEST_CASE("ppoll() in a fiber with and without a signal mask") {
  compare_waiting([](journal& log) {
    pipe_ends ends;
    pollfd entry{ends.reader.get(), POLLIN, 0};
    const timespec span{0, 15'000'000};
    const timespec wrong{0, -1};
    sigset_t mask{};
    log.call("ppoll", ::ppoll(&entry, 1, &span, nullptr));
    log.call("ppoll", ::ppoll(&entry, 1, &span, &mask));
    log.call("ppoll", ::ppoll(&entry, 1, &wrong, nullptr));
    for (const sigset_t* given :
         {static_cast<const sigset_t*>(nullptr), static_cast<const sigset_t*>(&mask)}) {
      const later writer([&] { ends.put(); });
      log.call("ppoll", ::ppoll(&entry, 1, nullptr, given));
      char byte = 0;
      log.call("read", ::read(ends.reader.get(), &byte, 1));
    }
  });
}

TEST_CASE("select() in a fiber changes its sets, and the remaining time") {
  compare_waiting([](journal& log) {
    pipe_ends first;
    pipe_ends second;
    const int count = std::max(first.reader.get(), second.reader.get()) + 1;
    fd_set wanted;
    const auto want = [&] {
      FD_ZERO(&wanted);
      FD_SET(first.reader.get(), &wanted);
      FD_SET(second.reader.get(), &wanted);
    };
    const auto note = [&] {
      log.number("first", FD_ISSET(first.reader.get(), &wanted) ? 1 : 0);
      log.number("second", FD_ISSET(second.reader.get(), &wanted) ? 1 : 0);
    };
    want();
    timeval limit{0, 15'000};
    log.call("select", ::select(count, &wanted, nullptr, nullptr, &limit));
    log.number("rest", limit.tv_sec * 1'000'000 + limit.tv_usec);
    note();
    want();
    limit = {10, 0};
    {
      const later writer([&] { second.put(); });
      log.call("select", ::select(count, &wanted, nullptr, nullptr, &limit));
    }
    log.number("rest", limit.tv_sec);
    note();
    want();
    const later writer([&] { first.put(); });
    char byte = 0;
    log.call("read", ::read(second.reader.get(), &byte, 1));
    log.call("pselect", ::pselect(count, &wanted, nullptr, nullptr, nullptr, nullptr));
    note();
    limit = {0, 10'000};
    log.call("select", ::select(0, nullptr, nullptr, nullptr, &limit));
    log.call("select", ::select(-1, nullptr, nullptr, nullptr, &limit));
    FD_SET(900, &wanted);
    log.call("select", ::select(901, &wanted, nullptr, nullptr, nullptr));
  });
}

TEST_CASE("epoll_wait() in a fiber waits for events of either kind") {
  for (const std::uint32_t kind :
       {0U, static_cast<unsigned>(EPOLLET), static_cast<unsigned>(EPOLLONESHOT)}) {
    CAPTURE(kind);
    compare_waiting([&](journal& log) {
      pipe_ends ends;
      const motet::fd all(::epoll_create1(0));
      epoll_event event{EPOLLIN | kind, {}};
      event.data.u32 = 5;
      REQUIRE(::epoll_ctl(all.get(), EPOLL_CTL_ADD, ends.reader.get(), &event) == 0);
      std::array<epoll_event, 4> events{};
      log.call("epoll_wait", ::epoll_wait(all.get(), events.data(), 4, 15));
      {
        const later writer([&] { ends.put(); });
        log.call("epoll_wait", ::epoll_wait(all.get(), events.data(), 4, -1));
      }
      log.number("data", events[0].data.u32);
      log.call("epoll_wait", ::epoll_wait(all.get(), events.data(), 4, 15));
      const timespec span{0, 5'000'000};
      log.call("epoll_pwait2", ::epoll_pwait2(all.get(), events.data(), 4, &span, nullptr));
      log.call("epoll_wait", ::epoll_wait(all.get(), events.data(), 0, -1));
      log.call("epoll_wait", ::epoll_wait(-1, events.data(), 4, -1));
    });
  }
}
