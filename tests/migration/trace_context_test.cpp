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
    explicit token(storage& store) : store_(&store) {}
    token(token&& other) noexcept : store_(std::exchange(other.store_, nullptr)) {}
    token& operator=(token&&) = delete;
    ~token() {
      if (store_ != nullptr) store_->attached_->pop_back();
    }

   private:
    storage* store_;
  };

  context current() const { return attached_->empty() ? context{} : attached_->back(); }
  token attach(context value) {
    attached_->push_back(std::move(value));
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
  context value = traces.current();
};

}  // namespace

TEST_CASE("fiber_local: a trace id follows a request to the fibers it spins, on any thread",
          "[traces]") {
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
    group members;
    std::string in_group;
    members.spin([&] { in_group = here_is(); });
    members.await_all();
    CHECK(in_group == "4bf92f35");
    testing::idle_thread worker;
    CHECK(worker.thread.spin([] { return here_is(); }).await() == "4bf92f35");
    CHECK(worker.thread.call([] { return here_is(); }) == "4bf92f35");
    promise<std::string> posted;
    worker.thread.post([&] { posted.set_value(here_is()); });
    CHECK(posted.get_future().get() == "4bf92f35");
    thread_pool pool(2);
    CHECK(pool.submit([] { return here_is(); }).get() == "4bf92f35");
    promise<std::string> to_runtime;
    here().post([&] { to_runtime.set_value(here_is()); });
    CHECK(to_runtime.get_future().get() == "4bf92f35");
  });
}

TEST_CASE("fiber_local: a trace id travels with its fiber, and changes made abroad come back",
          "[traces][portal]") {
  run_here([] {
    const auto request = traces.attach({"there-and-back"});
    testing::idle_thread worker;
    {
      const portal visit(worker.thread);
      CHECK(here_is() == "there-and-back");
      const auto span = traces.attach({"away"});
      CHECK(spin([] { return here_is(); }).await() == "away");
    }
    CHECK(here_is() == "there-and-back");
    teleport(worker.thread);
    CHECK(here_is() == "there-and-back");
  });
}

TEST_CASE("actor and channel carry the sender's trace id with a message", "[traces]") {
  run_here([] {
    std::vector<std::string> ids;
    using messages = traced<int>;
    {
      actor<messages> log([&](actor<messages>::inbox& inbox) {
        for (int remaining = 3; remaining > 0; --remaining) {
          const messages message = inbox.receive();
          const auto of_sender = traces.attach(message.value);
          ids.push_back(here_is() + ":" + std::to_string(message.message));
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
      while (ids.size() < 3) snooze();
    }
    CHECK(ids == std::vector<std::string>{"request0:0", "request1:1", ":2"});
    channel<messages> items(1);
    {
      const auto request = traces.attach({"pushed"});
      items.push({.message = 3});
    }
    const auto item = items.pop();
    REQUIRE(item.has_value());
    const auto of_sender = traces.attach(item->value);
    CHECK(here_is() == "pushed");
  });
}

TEST_CASE("fiber_local: fibers that run in turns do not see each other's trace id", "[traces]") {
  run_here([] {
    group members;
    bool right = true;
    for (int i = 0; i < 4; ++i) {
      members.spin([&, i] {
        const std::string id = "request" + std::to_string(i);
        const auto request = traces.attach({id});
        for (int round = 0; round < 5; ++round) {
          snooze();
          right = right && here_is() == id;
        }
      });
    }
    members.await_all();
    CHECK(right);
    CHECK(here_is().empty());
  });
}
