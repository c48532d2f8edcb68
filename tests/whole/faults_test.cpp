// SPDX-License-Identifier: MIT
// Every call of the kernel, and every allocation, that a small program makes fails once, in every
// way that it may: the program must end, by a result or by a clear error, and leave nothing behind.
#include "base/faults.hpp"

#include <dirent.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <motet/motet.hpp>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "places.hpp"
#include "support.hpp"
#include "whole/refusing_new.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

constexpr const char* allocation = "operator new";

/// Counts the calls of each name, and refuses one of them.
class saboteur {
 public:
  static constexpr std::size_t most_names = 64;

  void forget() {
    for (auto& counter : counters_) counter.store(0);
    refuse(nullptr, 0, 0);
  }
  /// From number `which` on, so many.
  void refuse(const char* name, std::size_t index, int error, std::size_t in_a_row = 1) {
    armed_.store(nullptr);
    index_ = index;
    in_a_row_ = in_a_row;
    error_ = error;
    armed_.store(name);
  }

  int next(const char* name) {
    const std::size_t place = place_of(name);
    const std::size_t turn = counters_[place].fetch_add(1);
    const char* armed = armed_.load();
    if (armed == nullptr || std::string_view(armed) != name) return 0;
    return turn >= index_ && turn - index_ < in_a_row_ ? error_ : 0;
  }

  std::map<std::string, std::size_t> counts() const {
    std::map<std::string, std::size_t> counts;
    for (std::size_t i = 0; i < most_names && names_[i].load() != nullptr; ++i) {
      counts[names_[i].load()] = counters_[i].load();
    }
    return counts;
  }

 private:
  std::size_t place_of(const char* name) {
    for (std::size_t i = 0; i < most_names; ++i) {
      const char* entry_name = names_[i].load();
      if (entry_name == nullptr && names_[i].compare_exchange_strong(entry_name, name)) return i;
      if (std::string_view(names_[i].load()) == name) return i;
    }
    std::abort();
  }

  std::array<std::atomic<const char*>, most_names> names_{};
  std::array<std::atomic<std::size_t>, most_names> counters_{};
  std::atomic<const char*> armed_{nullptr};
  std::size_t index_ = 0;
  std::size_t in_a_row_ = 1;
  int error_ = 0;
};

saboteur faulty;

int choose(const char* name) noexcept {
  return faulty.next(name);
}

bool refused() noexcept {
  const auto choice = detail::faults::choose.load();
  return choice != nullptr && choice(allocation) != 0;
}

}  // namespace

bool testing::refuses_new() noexcept {
  return refused();
}

bool testing::refuses_nothrow_new() noexcept {
  return false;
}

namespace {

void require(bool holds, const char* message) {
  if (!holds) throw std::runtime_error(message);
}

void talk(const net::endpoint& address, std::size_t size) {
  net::tcp_stream peer = net::tcp_stream::connect(address);
  std::vector<std::byte> request(size, std::byte{7});
  std::vector<std::byte> response(size);
  peer.write_all(request);
  std::size_t count = 0;
  while (count < size) {
    const std::size_t size_read = peer.read(std::span(response).subspan(count));
    if (size_read == 0) {  // what was refused was refused to the server
      throw std::system_error(std::make_error_code(std::errc::connection_reset));
    }
    count += size_read;
  }
  require(response == request, "the echo differs");
}

void echo(net::tcp_stream peer) {
  std::array<std::byte, 512> buffer;
  while (const std::size_t n = peer.read(buffer)) peer.write_all(std::span(buffer).first(n));
}

void converse() {
  net::tcp_listener listener(net::endpoint::loopback(0));
  group fibers;
  auto server = fibers.spin([&] { listener.serve(echo, [](const std::exception_ptr&) {}); });
  group clients;
  for (std::size_t i = 0; i < 3; ++i) {
    clients.spin([&, i] { talk(listener.local_endpoint(), 100 + 1'000 * i); });
  }
  clients.await_all();
  server.cancel();
  try {
    server.await();
  } catch (const fiber_cancelled&) {
  }
  fibers.await_all();
}

void use_a_pipe() {
  const auto pipe = testing::make_pipe();
  group fibers;
  fibers.spin([&] {
    for (int i = 0; i < 4; ++i) {
      const std::byte content{1};
      io::wait_fd(pipe.second(), POLLOUT);
      require(io::write(pipe.second(), {&content, 1}) == 1, "a write of one byte wrote none");
      snooze();
    }
  });
  for (int i = 0; i < 4; ++i) {
    std::byte byte{};
    require(io::read(pipe.first(), {&byte, 1}) == 1, "a pipe ended");
  }
  fibers.await_all();
}

void wait_in_vain() {
  const auto sockets = testing::make_socket_pair();
  const bool came = move_on_after(1ms, [&] {
    std::byte byte{};
    io::recv(sockets.first(), {&byte, 1});
  });
  require(!came, "a read of nothing returned");
  sleep_for(100us);
}

void spin_many() {
  group members;
  std::size_t ran = 0;
  for (int i = 0; i < 70; ++i) {
    members.spin([&] {
      snooze();
      ++ran;
    });
  }
  members.spin({.name = "one with a large stack and a long name", .stack_size = 1 << 20},
               [&] { ++ran; });
  members.await_all();
  require(ran == 71, "a fiber did not run");
}

void ask_another_thread() {
  std::atomic<bool> ready{false};
  fiber<int> distant;
  std::exception_ptr refused;
  std::thread remote([&] {
    try {
      run([&] {
        auto served = spin([] { return suspend<int>(); });
        distant = std::move(served);
        ready.store(true);
        ready.notify_all();
        suspend<int>();
      });
    } catch (const cancelled&) {
    } catch (...) {
      refused = std::current_exception();
    }
    ready.store(true);
    ready.notify_all();
  });
  ready.wait(false);
  std::exception_ptr failure;
  try {
    if (distant) {
      distant.schedule(7);
      require(distant.await() == 7, "another value than was given");
    }
  } catch (...) {
    failure = std::current_exception();
  }
  if (distant) {
    distant.cancel();
    distant.parent().cancel();
  }
  remote.join();
  if (failure) std::rethrow_exception(failure);
  if (refused) std::rethrow_exception(refused);
}

void give_work_to_threads() {
  std::atomic<int> ran{0};
  motet::thread worker([] { sleep(); });
  require(worker.call([] { return 3; }) == 3, "another value than was returned");
  auto child = worker.spin([&] { return ++ran; });
  require(child.await() == 1, "another value than was returned");
  worker.post([&] { ++ran; });
  worker.call([] {});
  require(ran == 2, "what was posted did not run");
  thread_pool pool(2, "small", 4);
  const auto sum = pool.submit([&] { return ++ran; });
  pool.post([&] { ++ran; });
  require(sum.get() >= 3, "another value than was returned");
  pool.drain();
  require(ran == 4, "a job did not run");
  require(offload([&] { return ++ran; }) == 5, "another value than was returned");
}

void drop_a_promise() {
  auto source = std::make_unique<promise<int>>();
  auto orphan = source->get_future();
  source.reset();
  try {
    orphan.get();
    require(false, "a future had a value that nobody gave");
  } catch (const std::future_error&) {
  }
}

/// A thread that is not motet's calls what it is given.
void visit_a_plain_thread() {
  testing::foreign_loop loop;
  const int home = testing::this_thread();
  {
    const portal visit(loop);
    require(testing::this_thread() == loop.number(), "a fiber is not where it went");
  }
  require(testing::this_thread() == home, "a fiber has not come back");
}

void go_elsewhere() {
  motet::thread worker([] { sleep(); });
  thread_pool pool(1, "small", 2);
  strand serial(pool);
  executor_bound<int> counter(serial, 0);
  const int home = testing::this_thread();
  std::atomic<int> ran{0};
  with_timeout(10s, [&] {
    const portal visit(worker);
    with_timeout(10s, [&] {
      const portal further(pool);
      group children;
      children.spin([&] { ++ran; });
      sleep_for(10us);
      children.await_all();
    });
    require(testing::this_thread() != home, "a fiber is not where it went");
  });
  require(testing::this_thread() == home, "a fiber has not come back");
  group travellers;
  travellers.spin([&] {
    teleport(worker);
    teleport(serial);
    ++ran;
  });
  travellers.await_all();
  require(counter.call([](int& number) { return ++number; }) == 1, "a call was lost");
  pool.drain();
  require(ran == 2, "a fiber did not run");
}

/// The cause of what the child is told takes memory, and may be missing, but not be another.
void end_a_family() {
  std::string message;
  const bool came = move_on_after(1ms, [&] {
    group children;
    children.spin([&] {
      try {
        sleep();
      } catch (const cancelled& error) {
        message = error.cause() == nullptr ? "its time was up" : error.cause()->reason();
        throw;
      }
    });
    children.await_all();
  });
  require(!came && message == "its time was up", "a child was told of another cause");
}

/// The smallest queues: they are full all the time.
options tight() {
  options config;
  config.ring_submissions = 2;
  config.ring_completions = 4;
  config.on_notice = [](std::string_view) {};
  config.on_unhandled = [](const std::exception_ptr&) {};
  return config;
}

void small_program() {
  run(tight(), [] {
    converse();
    use_a_pipe();
    wait_in_vain();
    end_a_family();
    spin_many();
    ask_another_thread();
    give_work_to_threads();
    drop_a_promise();
    visit_a_plain_thread();
    go_elsewhere();
  });
}

std::size_t open_descriptors() {
  DIR* directory = ::opendir("/proc/self/fd");
  std::size_t count = 0;
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count;
}

/// Returns: "ended", what it was refused with, or another word for what must not happen.
std::string run_it() {
  try {
    small_program();
    return "ended";
  } catch (const std::system_error& refused) {
    return refused.code().value() != 0 ? "refused" : "an error without a reason";
  } catch (const std::bad_alloc&) {
    return "refused";
  } catch (const fiber_cancelled&) {
    return "refused";  // its thread's runtime was
  } catch (const std::exception& remote) {
    return std::string("failed: ") + remote.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

std::vector<int> ways_to_fail(const std::string& call) {
  static const std::map<std::string, std::vector<int>> errors{
      {allocation, {ENOMEM}},
      {"mmap", {ENOMEM}},
      {"mprotect", {ENOMEM}},
      {"madvise", {ENOMEM, EINVAL}},
      {"process_madvise", {EPERM, ENOMEM}},
      {"pidfd_open", {EMFILE, ENOSYS}},
      {"pthread_create", {EAGAIN}},
      {"eventfd", {EMFILE, ENFILE, ENOMEM}},
      {"timerfd_create", {EMFILE, ENOMEM}},
      {"ev_loop_new", {ENOMEM}},
      {"socket", {EMFILE, ENOBUFS}},
      {"setsockopt", {ENOBUFS, EINVAL}},
      {"bind", {EADDRINUSE}},
      {"listen", {EADDRINUSE}},
      {"io_uring_setup", {ENOMEM, EMFILE}},
      {"io_uring_enter", {EINTR, EAGAIN, EBUSY}},
      {"io_uring_get_sqe", {detail::faults::falls_short}},
      {"read", {EINTR, EAGAIN, EIO, detail::faults::falls_short}},
      {"write", {EINTR, EAGAIN, ENOSPC, detail::faults::falls_short}},
      {"recv", {EINTR, EAGAIN, ECONNRESET, ENOMEM, detail::faults::falls_short}},
      {"send", {EINTR, EAGAIN, ENOBUFS, EPIPE, detail::faults::falls_short}},
      {"accept", {EINTR, EAGAIN, EMFILE, ECONNABORTED, ENOMEM}},
      {"accept4", {EINTR, EAGAIN, EMFILE, ECONNABORTED, ENOMEM}},
      {"connect", {EINTR, ECONNREFUSED, ETIMEDOUT}},
      {"wait_fd", {EINTR, EAGAIN, ENOMEM}},
      {"fcntl", {EMFILE}},
      {"posix_spawn", {EAGAIN, ENOMEM}},
  };
  INFO(call);
  const auto entry = errors.find(call);
  REQUIRE(entry != errors.end());
  return entry->second;
}

/// What nobody should notice: another try, or another way, is motet's own business.
bool is_invisible(const std::string& call, int error) {
  static const std::set<std::string> has_another_way{"madvise", "process_madvise", "pidfd_open",
                                                     "setsockopt"};
  if (call == "wait_fd") return error == EINTR;
  if (call == "pthread_create") return false;
  return has_another_way.count(call) > 0 || error == EINTR || error == EAGAIN || error == EBUSY ||
         error == detail::faults::falls_short;
}

}  // namespace

TEST_CASE("faults: a program that lacks memory ends with a result or a clear error", "[faults]") {
  detail::faults::choose.store(&choose);
  faulty.forget();
  REQUIRE(run_it() == "ended");
  const std::size_t count = faulty.counts()[allocation];
  const std::size_t descriptors = open_descriptors();
  const std::size_t step =
      std::max<std::size_t>(1, count / testing::scaled(100'000, testing::on_sim() ? 40 : 20));
  std::size_t refused = 0;
  for (const std::size_t in_a_row : {3U, 10U, 30U}) {
    for (std::size_t index = 0; index < count; index += step) {
      ::alarm(60);
      faulty.forget();
      faulty.refuse(allocation, index, ENOMEM, in_a_row);
      const std::string outcome = run_it();
      faulty.forget();
      INFO("operator new number " << index << " and " << in_a_row - 1 << " more: " << outcome);
      if (outcome != "ended" && outcome != "refused") CHECK(outcome == "refused");
      refused += outcome == "refused" ? 1 : 0;
      if (open_descriptors() != descriptors) REQUIRE(open_descriptors() == descriptors);
    }
  }
  CHECK(refused > 0);
  REQUIRE(run_it() == "ended");
  ::alarm(0);
  detail::faults::choose.store(nullptr);
}

TEST_CASE("faults: a program whose system calls are refused ends with a result or a clear error",
          "[faults]") {
  detail::faults::choose.store(&choose);
  faulty.forget();
  REQUIRE(run_it() == "ended");
  const auto counts = faulty.counts();
  CHECK(counts.size() >= 10);
  const std::size_t descriptors = open_descriptors();
  std::size_t runs = 0;
  std::size_t refused = 0;
  const std::size_t limit = testing::scaled(100'000, testing::on_sim() ? 40 : 20);
  for (const auto& [call, count] : counts) {
    const std::size_t step = std::max<std::size_t>(1, count / limit);
    for (const int error : ways_to_fail(call)) {
      for (std::size_t index = 0; index < count; index += step) {
        ::alarm(60);  // a hang ends the test
        faulty.forget();
        faulty.refuse(call.c_str(), index, error);
        const std::string outcome = run_it();
        faulty.forget();
        const bool as_it_should =
            outcome == "ended" || (outcome == "refused" && !is_invisible(call, error));
        ++(outcome == "ended" ? runs : refused);
        INFO(call << " number " << index << " failed with " << error << ": " << outcome);
        if (!as_it_should) CHECK(as_it_should);
        if (open_descriptors() != descriptors) REQUIRE(open_descriptors() == descriptors);
      }
    }
  }
  std::printf("%zu faults: %zu programs ended as ever, %zu by an error\n", runs + refused, runs,
              refused);
  CHECK(runs > 0);
  CHECK(refused > 0);
  REQUIRE(run_it() == "ended");
  ::alarm(0);
  detail::faults::choose.store(nullptr);
}
