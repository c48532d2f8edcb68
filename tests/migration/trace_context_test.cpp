// SPDX-License-Identifier: MIT
// The recipe of docs/observability.md: a trace id that follows a request on every way. The storage
// has the shape of OpenTelemetry's RuntimeContextStorage.
#include <memory>
#include <motet/motet.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "places.hpp"
#include "quiet.hpp"

using namespace motet;
using testing::run_here;

namespace {

/// As opentelemetry::context::Context: a value that is cheap to copy.
struct context {
  std::string trace;
};

class storage {
 public:
  /// As opentelemetry::context::Token.
  class token {
   public:
    explicit token(storage& from) : from_(&from) {}
    token(token&& other) noexcept : from_(std::exchange(other.from_, nullptr)) {}
    token& operator=(token&&) = delete;
    ~token() {
      if (from_ != nullptr) from_->attached_->pop_back();
    }

   private:
    storage* from_;
  };

  context current() const { return attached_->empty() ? context{} : attached_->back(); }
  token attach(context now) {
    attached_->push_back(std::move(now));
    return token(*this);
  }

 private:
  fiber_local<std::vector<context>> attached_{inherited};
};

storage traces;

std::string here_is() {
  return traces.current().trace;
}

/// A message goes alone: it takes its sender's context along.
template <typename M>
struct traced {
  M message;
  context of = traces.current();
};

}  // namespace

TEST_CASE("a trace id follows a request to the fibers it spins, on whatever thread", "[traces]") {
  run_here([] {
    const auto request = traces.attach({"4bf92f35"});
    CHECK(here_is() == "4bf92f35");
    CHECK(spin([] { return here_is(); }).await() == "4bf92f35");
    {
      const auto span = traces.attach({"4bf92f35-child"});
      auto child = spin([] { return here_is(); });
      CHECK(child.await() == "4bf92f35-child");
    }
    CHECK(here_is() == "4bf92f35");
    group all;
    std::string in_group;
    all.spin([&] { in_group = here_is(); });
    all.await_all();
    CHECK(in_group == "4bf92f35");
    testing::idle_thread other;
    CHECK(other.itself.spin([] { return here_is(); }).await() == "4bf92f35");
    CHECK(other.itself.call([] { return here_is(); }) == "4bf92f35");
    promise<std::string> posted;
    other.itself.post([&] { posted.set_value(here_is()); });
    CHECK(posted.get_future().get() == "4bf92f35");
    thread_pool pool(2);
    CHECK(pool.submit([] { return here_is(); }).get() == "4bf92f35");
    promise<std::string> to_runtime;
    here().post([&] { to_runtime.set_value(here_is()); });
    CHECK(to_runtime.get_future().get() == "4bf92f35");
  });
}

TEST_CASE("a trace id travels with its fiber, and what it attaches on the way comes back",
          "[traces][portal]") {
  run_here([] {
    const auto request = traces.attach({"there-and-back"});
    testing::idle_thread other;
    {
      const portal there(other.itself);
      CHECK(here_is() == "there-and-back");
      const auto span = traces.attach({"away"});
      CHECK(spin([] { return here_is(); }).await() == "away");
    }
    CHECK(here_is() == "there-and-back");
    teleport(other.itself);
    CHECK(here_is() == "there-and-back");
  });
}

TEST_CASE("a message brings its sender's trace id to an actor, and to a channel", "[traces]") {
  run_here([] {
    std::vector<std::string> seen;
    using messages = traced<int>;
    {
      actor<messages> log([&](actor<messages>::inbox& inbox) {
        for (int left = 3; left > 0; --left) {
          const messages each = inbox.receive();
          const auto of_sender = traces.attach(each.of);
          seen.push_back(here_is() + ":" + std::to_string(each.message));
        }
      });
      group senders;
      for (int i = 0; i < 2; ++i) {
        senders.spin([&, i] {
          const auto request = traces.attach({"request" + std::to_string(i)});
          log.send({.message = i});
        });
      }
      senders.await_all();
      log.send({.message = 2});
      while (seen.size() < 3) snooze();
    }
    CHECK(seen == std::vector<std::string>{"request0:0", "request1:1", ":2"});
    channel<messages> items(1);
    {
      const auto request = traces.attach({"pushed"});
      items.push({.message = 3});
    }
    const auto got = items.pop();
    REQUIRE(got.has_value());
    const auto of_sender = traces.attach(got->of);
    CHECK(here_is() == "pushed");
  });
}

TEST_CASE("fibers that run in turns do not see one another's trace id", "[traces]") {
  run_here([] {
    group all;
    bool right = true;
    for (int i = 0; i < 4; ++i) {
      all.spin([&, i] {
        const std::string mine = "request" + std::to_string(i);
        const auto request = traces.attach({mine});
        for (int round = 0; round < 5; ++round) {
          snooze();
          right = right && here_is() == mine;
        }
      });
    }
    all.await_all();
    CHECK(right);
    CHECK(here_is().empty());
  });
}
