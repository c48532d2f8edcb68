// SPDX-License-Identifier: MIT
// The claim of a waiter, and the removal of its node from a list: detail/sync/waiter.hpp,
// detail/sync/wait_list.hpp, sync/waiter.cpp.
#include <array>
#include <motet/detail/core/wait_record.hpp>
#include <motet/detail/sync/sharing.hpp>
#include <motet/detail/sync/wait_list.hpp>
#include <motet/detail/sync/waiter.hpp>
#include <mutex>
#include <optional>

#include "explorer/explore.hpp"
#include "explorer/model_test.hpp"

using namespace explorer;
using motet::detail::shared_policy;
using motet::detail::single_wait;
using motet::detail::wait_list;
using motet::detail::wait_node;
using motet::detail::wake_reason;

namespace {

using item = plain<int>;

/// A primitive that hands an item to one waiter.
struct hand_over {
  shared_policy sharing;
  wait_list waiters;

  ~hand_over() { waiters.detach_all(sharing); }

  void enter(wait_node& node) {
    const std::lock_guard lock(sharing);
    waiters.push_back(node);
  }
  /// Returns: whether a waiter has the item.
  bool give() {
    wait_node* chosen = nullptr;
    {
      const std::lock_guard lock(sharing);
      chosen = waiters.choose(nullptr);
      if (chosen != nullptr) static_cast<item*>(chosen->slot)->set(1);
    }
    if (chosen != nullptr) chosen->owner->notify(nullptr);
    return chosen != nullptr;
  }
};

enum class outcome { given, interrupted, destroyed };

/// A wait that is interrupted at some time, unless something else ends it first.
outcome wait_interrupted(hand_over& primitive, single_wait& node) {
  if (node.lone_waiter.wait.claim(wake_reason::interrupted)) {
    motet::detail::leave(primitive.sharing, node, [] {});
    return outcome::interrupted;
  }
  node.lone_waiter.park();
  if (node.lone_waiter.destroyed) return outcome::destroyed;
  check(static_cast<item*>(node.slot)->get() == 1, "the item has not come");
  return outcome::given;
}

}  // namespace

TEST_CASE("waiter::choose() and an interruption: one of them ends the wait", "[explorer]") {
  const auto model = [](world& all) {
    hand_over primitive;
    outcome end = outcome::destroyed;
    std::array<bool, 2> gave{};
    {
      item storage;
      std::optional<single_wait> node(std::in_place, "a wait", nullptr, nullptr, true);
      node->slot = &storage;
      primitive.enter(*node);
      all.add_thread([&] {
        end = wait_interrupted(primitive, *node);
        node.reset();
      });
      for (bool& success : gave) {
        all.add_thread([&] { success = primitive.give(); });
      }
      all.run();
    }
    check(static_cast<int>(gave[0]) + static_cast<int>(gave[1]) == (end == outcome::given ? 1 : 0),
          "not each item given has come");
  };
  check_model("two givers and an interruption", {}, model,
              {{kind::torn, "claim"},
               {kind::relaxed, "set"},
               {kind::blind, "await_detached", 3},
               {kind::relaxed, "detach"}});
}

TEST_CASE("wait_list::detach_all() and an interrupted waiter leave nothing behind", "[explorer]") {
  const auto model = [](world& all) {
    std::optional<hand_over> primitive(std::in_place);
    std::optional<single_wait> node(std::in_place, "a wait", nullptr, nullptr, true);
    primitive->enter(*node);
    all.add_thread([&] {
      const outcome end = wait_interrupted(*primitive, *node);
      check(end != outcome::given, "a wait ends with an item that nobody gave");
      node.reset();
    });
    all.add_thread([&] { primitive.reset(); });
    all.run();
  };
  check_model("the end of a primitive and an interruption", {}, model,
              {{kind::torn, "claim"},
               {kind::torn, "detach"},
               {kind::torn, "leave"},
               {kind::blind, "await_detached", 3},
               {kind::relaxed, "detach"}});
}

TEST_CASE("wait_list::choose() passes an interrupted waiter whose node it detaches", "[explorer]") {
  const auto model = [](world& all) {
    hand_over primitive;
    std::array<item, 2> storage;
    std::array<std::optional<single_wait>, 2> nodes;
    outcome end = outcome::destroyed;
    bool gave = false;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      nodes[i].emplace("a wait", nullptr, nullptr, true).slot = &storage[i];
      primitive.enter(*nodes[i]);
    }
    all.add_thread([&] {
      end = wait_interrupted(primitive, *nodes[0]);
      nodes[0].reset();
    });
    all.add_thread([&] {
      nodes[1]->lone_waiter.park();
      check(storage[1].get() == 1, "the item has not come");
      nodes[1].reset();
    });
    all.add_thread([&] {
      gave = primitive.give();
      primitive.give();
    });
    all.run();
    check(gave, "no waiter was chosen, though one was open");
  };
  check_model("a giver that passes an interrupted waiter", {}, model,
              {{kind::blind, "await_detached", 3}, {kind::relaxed, "detach"}});
}
