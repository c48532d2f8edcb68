// SPDX-License-Identifier: MIT
// The seam, where operations end: cancelled, at a deadline, by a wake, many at once, in the order
// of their stream. Each comes back exactly once.
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <deque>
#include <motet/runtime/backend.hpp>
#include <string>
#include <thread>
#include <vector>

#include "backends/machine.hpp"
#include "base/remote_closings.hpp"
#include "catch.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::all_kinds;
using testing::block;
using testing::connected;
using testing::counted_signal;
using testing::machine;
using testing::make_pipe;
using testing::make_socket_pair;
using testing::put;
using testing::reading_verbs;
using testing::signals_seen;
using testing::trial;
using testing::writing_verbs;
using time_point = backend::time_point;

namespace {

std::uint64_t new_stream() {
  static std::atomic<std::uint64_t> last{1'000'000};  // not a number that a tcp_stream has
  return ++last;
}

}  // namespace

TEST_CASE("backend::cancel() returns an operation once, and nothing of it has happened",
          "[backend]") {
  machine m;
  for (connected& pair : all_kinds()) {
    for (const verb kind : reading_verbs(pair.socket)) {
      INFO(pair.kind << ", verb " << static_cast<int>(kind));
      block buffer(8);
      trial read;
      buffer.describe(read, kind, pair.ends.first());
      m.submit(read);
      m.look();
      CHECK(m.cancel(read) == -ECANCELED);
      put(pair.ends.second(), "later");
      m.look();
      CHECK(read.ends == 1);
      CHECK(buffer.bytes == "........");
      CHECK(testing::take_all(pair.ends.first()) == "later");
    }
    testing::fill(pair.ends.second());
    for (const verb kind : writing_verbs(pair.socket)) {
      INFO(pair.kind << ", verb " << static_cast<int>(kind));
      block text(8, 'n');
      trial write;
      text.describe(write, kind, pair.ends.second());
      m.submit(write);
      m.look();
      CHECK(m.cancel(write) == -ECANCELED);
    }
    CHECK(testing::take_all(pair.ends.first()).find('n') == std::string::npos);
  }
}

TEST_CASE("backend::cancel() works right after submit()", "[backend]") {
  machine m;
  auto ends = make_pipe();
  char byte = '.';
  trial read(verb::read, ends.first(), &byte, 1);
  m.submit(read);
  CHECK(m.cancel(read) == -ECANCELED);
}

TEST_CASE("backend::cancel() changes nothing the second time", "[backend]") {
  machine m;
  auto ends = make_pipe();
  char byte = '.';
  trial read(verb::read, ends.first(), &byte, 1);
  m.submit(read);
  m.look();
  m.kernel().cancel(read.op);
  m.kernel().cancel(read.op);
  CHECK(m.cancel(read) == -ECANCELED);
}

TEST_CASE("backend::cancel() comes too late and loses nothing, or in time and takes nothing",
          "[backend]") {
  machine m;
  const std::size_t rounds = testing::scaled(100'000, testing::under_tsan ? 1'000 : 5'000);
  for (connected& pair : all_kinds()) {
    INFO(pair.kind);
    int count = 0;
    for (std::size_t round = 0; round < rounds; ++round) {
      char byte = '.';
      trial read(verb::read, pair.ends.first(), &byte, 1);
      m.submit(read);
      if ((round & 1) != 0) m.poll(time_point::min());
      if ((round & 2) != 0) put(pair.ends.second(), "x");
      if ((round & 8) != 0 && (round & 2) != 0) m.poll(time_point::min());
      if (read.ends == 0) {
        m.kernel().cancel(read.op);
        if ((round & 4) != 0) m.kernel().cancel(read.op);
      }
      if ((round & 2) == 0) put(pair.ends.second(), "x");
      const std::int32_t result = m.result_of(read);
      const std::string remaining = testing::take_all(pair.ends.first());
      if (result == 1) {
        ++count;
        REQUIRE(byte == 'x');
        REQUIRE(remaining.empty());
      } else {
        REQUIRE(result == -ECANCELED);
        REQUIRE(byte == '.');
        REQUIRE(remaining == "x");
      }
    }
    CHECK(count > 0);
    if (!testing::kernel_acts_any_time()) CHECK(static_cast<std::size_t>(count) < rounds);
  }
}

TEST_CASE("backend::poll() ends at its deadline and never before", "[backend]") {
  machine m;
  for (const auto span : {0us, 1us, 50us, 500us, 1'500us, 2'500us, 5'000us, 12'000us}) {
    INFO("span " << span.count() << " us");
    const time_point deadline = m.kernel().now() + span;
    m.poll(deadline);
    CHECK(m.kernel().now() >= deadline);
  }
}

TEST_CASE("backend::poll() keeps its deadline while an operation is under way", "[backend]") {
  machine m;
  auto ends = make_pipe();
  char byte = '.';
  trial read(verb::read, ends.first(), &byte, 1);
  m.submit(read);
  for (const auto span : {100us, 1'000us, 5'000us, 100us}) {
    const time_point deadline = m.kernel().now() + span;
    m.poll(deadline);
    CHECK(m.kernel().now() >= deadline);
    CHECK(read.ends == 0);
  }
  CHECK(m.cancel(read) == -ECANCELED);
}

TEST_CASE("backend::poll() keeps its deadline when it must look at an operation again",
          "[backend]") {
  machine m;
  const fd listener = testing::make_listener(SOCK_NONBLOCK);
  trial accept(verb::accept, listener.get());
  m.submit(accept);
  const time_point deadline = m.kernel().now() + 5ms;
  m.poll(deadline);
  CHECK(m.kernel().now() >= deadline);
  CHECK(accept.ends == 0);
  CHECK(m.cancel(accept) == -ECANCELED);
}

TEST_CASE("backend::poll() does not end at the deadline of the poll before", "[backend]") {
  machine m;
  for (int i = 0; i < 5; ++i) {
    m.wake();
    m.poll(m.kernel().now() + 1ms);
    const time_point deadline = m.kernel().now() + 6ms;
    m.poll(deadline);
    CHECK(m.kernel().now() >= deadline);
  }
}

TEST_CASE("backend::poll() keeps a deadline that has passed, and an earlier one after a later one",
          "[backend]") {
  machine m;
  m.poll(m.kernel().now() - 1s);
  m.poll(time_point());
  const auto start = m.kernel().now();
  m.wake();
  m.poll(start + 1h);
  const time_point soon = m.kernel().now() + 1ms;
  m.poll(soon);
  CHECK(m.kernel().now() >= soon);
  CHECK(m.kernel().now() < start + 1h);
}

TEST_CASE("backend::poll() does not wait if its deadline is the smallest", "[backend]") {
  machine m;
  auto ends = make_pipe();
  char byte = '.';
  trial read(verb::read, ends.first(), &byte, 1);
  m.submit(read);
  for (int i = 0; i < 100; ++i) m.poll(time_point::min());
  CHECK(read.ends == 0);
  put(ends.second(), "x");
  m.look();
  CHECK(read.ends == 1);
}

TEST_CASE("backend::poll() ends when any thread writes to the wake descriptor", "[backend]") {
  machine m;
  const std::size_t rounds = testing::scaled(100'000, 2'000);
  std::atomic<std::size_t> poll_count{0};
  std::thread waker([&] {
    for (std::size_t round = 1; round <= rounds; ++round) {
      while (poll_count.load() < round) std::this_thread::yield();
      m.wake();
    }
  });
  for (std::size_t round = 1; round <= rounds; ++round) {
    poll_count.store(round);
    m.poll(time_point::max());
  }
  waker.join();
}

TEST_CASE("backend::poll() ends once for each wake", "[backend]") {
  machine m;
  m.wake();
  m.wake();
  m.poll(time_point::max());
  const time_point deadline = m.kernel().now() + 3ms;
  m.poll(deadline);
  CHECK(m.kernel().now() >= deadline);
}

TEST_CASE("backend::submit() loses no wake", "[backend]") {
  backend_options small;
  small.submissions = 4;
  small.completions = 8;
  machine m(small);
  const fd events(::eventfd(0, EFD_CLOEXEC));
  std::uint64_t value = 0;
  std::deque<trial> reads;
  m.wake();
  for (int i = 0; i < 20; ++i) {
    m.submit(reads.emplace_back(verb::read, events.get(), &value, sizeof value));
  }
  m.poll(time_point::max());
  for (trial& attempt : reads) m.kernel().cancel(attempt.op);
  for (trial& attempt : reads) CHECK(m.result_of(attempt) == -ECANCELED);
}

TEST_CASE("backend::poll() survives a signal", "[backend]") {
  machine m;
  const counted_signal alarms(SIGALRM);
  auto ends = make_pipe();
  char byte = '.';
  trial read(verb::read, ends.first(), &byte, 1);
  m.submit(read);
  const itimerval soon{{0, 0}, {0, 2'000}};
  ::setitimer(ITIMER_REAL, &soon, nullptr);
  while (signals_seen == 0) m.poll(time_point::max());
  CHECK(read.ends == 0);
  put(ends.second(), "x");
  CHECK(m.result_of(read) == 1);
}

TEST_CASE("backend::poll() returns all operations though they exceed the queues", "[backend]") {
  for (const unsigned submissions : {4U, 256U}) {
    for (const int mode : {0, static_cast<int>(EFD_NONBLOCK)}) {
      INFO("submissions " << submissions << ", mode " << mode);
      backend_options sizes;
      sizes.submissions = submissions;
      sizes.completions = submissions * 2;
      machine m(sizes);
      constexpr std::size_t count = 1'000;
      const fd events(::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE | mode));
      std::vector<std::uint64_t> values(count);
      std::deque<trial> reads;
      for (std::uint64_t& value : values) {
        m.submit(reads.emplace_back(verb::read, events.get(), &value, sizeof value));
      }
      m.look();
      const std::uint64_t total = count;
      REQUIRE(::write(events.get(), &total, sizeof total) == sizeof total);
      for (trial& attempt : reads) m.wait_for(attempt);
      m.look();
      std::size_t right = 0;
      for (std::size_t i = 0; i < count; ++i) {
        right += reads[i].ends == 1 && reads[i].op.result == 8 && values[i] == 1 ? 1 : 0;
      }
      CHECK(right == count);
    }
  }
}

TEST_CASE("backend::cancel() works for more operations than the queues can hold", "[backend]") {
  backend_options small;
  small.submissions = 4;
  small.completions = 8;
  machine m(small);
  auto ends = make_pipe();
  std::vector<char> bytes(1'000, '.');
  std::deque<trial> reads;
  for (char& byte : bytes) m.submit(reads.emplace_back(verb::read, ends.first(), &byte, 1U));
  for (trial& attempt : reads) m.kernel().cancel(attempt.op);
  for (trial& attempt : reads) m.wait_for(attempt);
  m.look();
  std::size_t right = 0;
  for (trial& attempt : reads)
    right += attempt.ends == 1 && attempt.op.result == -ECANCELED ? 1 : 0;
  CHECK(right == reads.size());
}

TEST_CASE("backend::poll() returns all completions though they exceed the queue", "[backend]") {
  backend_options small;
  small.submissions = 4;
  small.completions = 8;
  machine m(small);
  auto ends = make_pipe();
  put(ends.second(), "x");
  std::deque<trial> looks;
  for (int i = 0; i < 1'000; ++i) {
    m.submit(looks.emplace_back(verb::wait_fd, ends.first(), nullptr, 0, POLLIN));
  }
  for (trial& attempt : looks) m.wait_for(attempt);
  m.look();
  std::size_t right = 0;
  for (trial& attempt : looks) right += attempt.ends == 1 && attempt.op.result == POLLIN ? 1 : 0;
  CHECK(right == looks.size());
}

TEST_CASE("backend::submit() keeps the operations of a stream in order", "[backend]") {
  machine m;
  auto ends = make_socket_pair();
  const std::uint64_t stream = new_stream();
  for (int round = 0; round < 100; ++round) {
    INFO("round " << round);
    char byte = '.';
    trial read(verb::recv, ends.first(), &byte, 1);
    read.op.stream = stream;
    read.op.expects_wait = (round & 1) != 0;
    const bool there_already = (round & 2) != 0;
    if (there_already) put(ends.second(), "x");
    m.submit(read);
    if (!there_already) {
      m.look();
      REQUIRE(read.ends == 0);
      put(ends.second(), "x");
    }
    REQUIRE(m.result_of(read) == 1);
    REQUIRE(byte == 'x');

    trial victim(verb::recv, ends.first(), &byte, 1);
    victim.op.stream = stream;
    m.submit(victim);
    if ((round & 4) != 0) m.look();
    REQUIRE(m.cancel(victim) == -ECANCELED);

    trial send(verb::send, ends.first(), &byte, 1, MSG_NOSIGNAL);
    send.op.stream = stream;
    send.op.expects_wait = (round & 8) != 0;
    REQUIRE(m.perform(send) == 1);
    REQUIRE(testing::take_all(ends.second()) == "x");
  }
}

TEST_CASE("backend::submit() starts a stream anew on a recycled descriptor or another backend",
          "[backend]") {
  machine first;
  machine second;
  const std::uint64_t travelling = new_stream();
  auto stays = make_socket_pair();
  for (int round = 0; round < 20; ++round) {
    INFO("round " << round);
    char byte = '.';
    {
      auto ends = make_socket_pair();
      trial read(verb::recv, ends.first(), &byte, 1);
      read.op.stream = new_stream();
      read.op.expects_wait = true;
      first.submit(read);
      first.look();
      REQUIRE(read.ends == 0);
      put(ends.second(), "x");
      REQUIRE(first.result_of(read) == 1);
    }
    machine& current = (round & 1) != 0 ? second : first;
    trial read(verb::recv, stays.first(), &byte, 1);
    read.op.stream = travelling;
    read.op.expects_wait = true;
    current.submit(read);
    current.look();
    REQUIRE(read.ends == 0);
    put(stays.second(), "y");
    REQUIRE(current.result_of(read) == 1);
  }
}

TEST_CASE("backend::forget() leaves nothing of a closed stream, though a duplicate lives on",
          "[backend]") {
  const bool elsewhere = GENERATE(false, true);
  machine m;
  std::vector<fd> duplicates;
  std::deque<connected> streams;
  for (int i = 0; i < 4; ++i) {
    auto& ends = streams.emplace_back("a stream", true, 0).ends;
    char byte = '.';
    trial read(verb::recv, ends.first(), &byte, 1);
    read.op.stream = new_stream();
    read.op.expects_wait = true;
    m.submit(read);
    m.look();
    put(ends.second(), "x");
    while (read.ends == 0) m.poll(time_point::min());
  }
  for (int i = 0; i < 4; i += 2) {
    duplicates.emplace_back(::dup(streams[static_cast<std::size_t>(i)].ends.first()));
  }
  for (connected& pair : streams) {
    if (elsewhere) {
      const detail::remote_closing guard;
      pair.ends.close_first();
    } else {
      m.kernel().forget(pair.ends.first());
      pair.ends.close_first();
    }
  }
  for (int round = 0; round < 3; ++round) {
    for (connected& pair : streams) (void)::send(pair.ends.second(), "y", 1, MSG_NOSIGNAL);
    m.look();
    auto ends = make_socket_pair();
    char byte = '.';
    trial read(verb::recv, ends.first(), &byte, 1);
    read.op.stream = new_stream();
    m.submit(read);
    m.look();
    CHECK(read.ends == 0);
    put(ends.second(), "z");
    CHECK(m.result_of(read) == 1);
    CHECK(byte == 'z');
    m.kernel().forget(ends.first());
  }
}

TEST_CASE("backend::poll() passes what was submitted to the kernel", "[backend]") {
  machine m;
  auto ends = make_pipe();
  char byte = 'x';
  trial write(verb::write, ends.second(), &byte, 1);
  m.submit(write);
  m.poll(time_point::min());
  CHECK(testing::take_all(ends.first()) == "x");
  CHECK(m.result_of(write) == 1);
}

TEST_CASE("backend leaves no trace when it is made, used and destroyed many times", "[backend]") {
  {
    machine warm;
  }
  const std::size_t descriptors = testing::open_descriptors();
  for (int i = 0; i < 20; ++i) {
    machine m;
    auto ends = make_pipe();
    char byte = 'x';
    put(ends.second(), "x");
    trial read(verb::read, ends.first(), &byte, 1);
    REQUIRE(m.perform(read) == 1);
  }
  CHECK(testing::open_descriptors() == descriptors);
}
