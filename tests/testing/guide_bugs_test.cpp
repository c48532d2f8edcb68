// SPDX-License-Identifier: MIT
// The bugs of docs/testing.md: a timeout, a retry, a partition and a crash. Each is found, its log
// becomes short, and the corrected program passes.
#include <fcntl.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <motet/motet.hpp>
#include <motet/net.hpp>
#include <motet/testing.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "catch.hpp"
#include "testing/decisions.hpp"
#include "testing/shrink.hpp"
#include "testing/simulations.hpp"

namespace {

using namespace motet;
using namespace std::chrono_literals;
using motet::testing::host;
using motet::testing::outcome;
using motet::testing::plan;
using motet::testing::world;
using ::testing::require;

constexpr std::uint16_t port = 7'000;

/// Answers lines, each by a call of `answer`.
void serve_lines(const std::function<std::string(std::string)>& answer) {
  net::tcp_listener listener(net::endpoint::any(port));
  const net::serve_options quiet{.on_error = [](const std::exception_ptr&) {}};
  listener.serve(quiet, [&](net::tcp_stream peer) {
    reader lines(peer);
    while (const auto line = lines.line()) peer.write_all(answer(std::string(*line)) + "\n");
  });
}

/// A connection on which one question is asked at a time.
class connection {
 public:
  connection() : stream_(net::tcp_stream::connect("server", port)), lines_(stream_) {}

  std::string ask(const std::string& question) {
    stream_.write_all(question + "\n");
    const auto line = lines_.line();
    if (!line) throw std::system_error(ECONNRESET, std::system_category());
    return std::string(*line);
  }

 private:
  net::tcp_stream stream_;
  reader<net::tcp_stream> lines_;
};

/// After a timeout the answer is still under way: the next question gets it.
void timeout(world& in, bool correct) {
  const host server = in.add("server", [&] {
    serve_lines([&](std::string question) {
      sleep_for(std::chrono::milliseconds(in.random(120)));
      return question;
    });
  });
  in.advance(1ms);
  std::optional<connection> open;
  for (int i = 0; i < 5; ++i) {
    const std::string question = std::to_string(i);
    const bool in_time = move_on_after(100ms, [&] {
      if (!open) open.emplace();
      require(open->ask(question) == question, "the answer is that of the question");
    });
    if (!in_time && correct) open.reset();
  }
}

/// The answer is lost, not the request: it is performed twice.
void retry(world& in, bool correct) {
  int balance = 0;
  std::set<std::string> performed;
  const host server = in.add("server", [&] {
    serve_lines([&](const std::string& request) {
      if (!correct || performed.insert(request).second) ++balance;
      return std::string("done");
    });
  });
  in.advance(1ms);
  in.net().resets = 0.1;
  for (int i = 1; i <= 5; ++i) {
    for (bool done = false; !done;) {
      try {
        done = connection().ask("deposit " + std::to_string(i)) == "done";
      } catch (const std::system_error&) {
        sleep_for(10ms);
      }
    }
    require(balance == i, "a deposit is performed once");
  }
}

/// A primary says that it lives; a standby that hears nothing takes over, although it may be the
/// network that has failed. A primary that hears no answer must give up first.
void partition(world& in, bool correct) {
  bool primary_serves = true;
  bool standby_serves = false;
  in.always([&] { return !(primary_serves && standby_serves); });
  const host primary = in.add("primary", [&] {
    net::udp_socket socket(net::endpoint::any(port));
    std::array<std::byte, 1> byte{};
    for (;;) {
      socket.send_to(byte, dns::resolve("standby", port).front());
      const bool answered = move_on_after(200ms, [&] { socket.receive_from(byte); });
      if (!answered && correct) break;
      sleep_for(100ms);
    }
    primary_serves = false;
    sleep();
  });
  const host standby = in.add("standby", [&] {
    net::udp_socket socket(net::endpoint::any(port));
    std::array<std::byte, 1> byte{};
    const auto receive = [&] { socket.send_to(byte, socket.receive_from(byte).from); };
    while (move_on_after(1s, receive)) continue;
    standby_serves = true;
    sleep();
  });
  sleep_for(std::chrono::milliseconds(in.random(1'000)));
  in.partition(primary, standby);
  sleep_for(std::chrono::milliseconds(in.random(2'000)));
  in.heal();
  sleep_for(2s);
}

/// A file that is written in place is lost, or torn, if the power fails meanwhile.
void crash(world& in, bool correct) {
  const auto save = [correct](const std::string& text) {
    file target =
        file::open(correct ? "new" : "state", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    target.write_all(text);
    target.sync();
    if (!correct) return;
    io::renameat(AT_FDCWD, "new", AT_FDCWD, "state");
    const fd directory(io::openat(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY));
    io::fsync(directory.get());
  };
  int saved = 0;
  host computer = in.add("computer", [&] {
    std::error_code error;
    file source = file::open("state", O_RDONLY | O_CLOEXEC, 0, error);
    std::string text = error ? "0" : std::string(static_cast<std::size_t>(source.size()), '\0');
    if (!error) source.read_exactly(std::as_writable_bytes(std::span(text)));
    require(!text.empty() && std::stoi(text) >= saved, "what was saved is there");
    for (int i = saved + 1;; ++i) {
      save(std::to_string(i));
      saved = i;
      sleep_for(50ms);
    }
  });
  for (int i = 0; i < 3; ++i) {
    sleep_for(std::chrono::milliseconds(in.random(200)));
    in.crash(computer);
    in.restart(computer);
  }
  sleep_for(10ms);
}

}  // namespace

TEST_CASE("testing::explore() finds the bugs of its guide, and shortens their logs") {
  struct bug {
    const char* name;
    void (*run)(world&, bool);
    const char* failure;
  };
  const bug all[] = {{"timeout", &timeout, "the answer is that of the question"},
                     {"retry", &retry, "a deposit is performed once"},
                     {"partition", &partition, "the invariant of "},
                     {"crash", &crash, "what was saved is there"}};
  for (const bug& each : all) {
    CAPTURE(each.name);
    plan how;
    outcome found;
    const auto wrong = [&](world& in) { each.run(in, false); };
    for (; how.seed < 1'000 && !found.failure.size(); ++how.seed)
      found = motet::testing::run(how, wrong);
    REQUIRE(found.failure.find(each.failure) != std::string::npos);
    const auto log = motet::testing::shrunk(how, wrong, found);
    CHECK(log.made.size() < 40);
    how.log = text_of(log);
    CHECK(motet::testing::run(how, wrong).failure == found.failure);
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const outcome right =
          motet::testing::run({.seed = seed}, [&](world& in) { each.run(in, true); });
      INFO("seed " << seed << ": " << right.failure);
      REQUIRE(right.passed);
    }
  }
}
