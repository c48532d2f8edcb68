// SPDX-License-Identifier: MIT
// A thread that sleeps, and threads that post to it: core/mail/mailbox.cpp.
#include <array>
#include <cstddef>
#include <memory>
#include <motet/detail/base/post.hpp>

#include "core/mail/mailbox.hpp"
#include "explorer/explore.hpp"
#include "explorer/model_test.hpp"
#include "platform/cores.hpp"
#include "platform/ticks.hpp"

using namespace explorer;
using motet::detail::mailbox;
using motet::detail::post;

namespace {

struct letter : post {
  plain<int> text{0};
  atomic<bool> was_read{false};
};

struct dispose {
  void operator()(mailbox* box) const {
    while (!box->closed() && !box->close()) box->take();
    mailbox::dispose(box);
  }
};
using owned_mailbox = std::unique_ptr<mailbox, dispose>;

/// Returns: how many letters there were.
std::size_t read_all(mailbox& box) {
  std::size_t count = 0;
  for (post* item = box.take(); item != nullptr; item = item->next) {
    auto& one = *static_cast<letter*>(item);
    check(one.text.get() == 1, "a letter is read before it is written");
    one.was_read.store(true);
    ++count;
  }
  return count;
}

/// As thread_state::poll() waits, in a backend that waits for the wake descriptor alone.
void sleep_unless_filled(mailbox& box, bool idle) {
  if (box.filled() || !box.announce_sleep(idle)) return;
  here().read_event(box.wake_descriptor());
  box.awake();
}

/// As thread_state::wait_awake() waits, for at most `looks` looks.
void look_for_a_while(mailbox& box, int looks) {
  box.announce_look();
  for (int i = 0; i < looks && !box.filled(); ++i) motet::detail::pause();
  box.awake();
}

void write_and_push(letter& item, mailbox& box) {
  item.text.set(1);
  check(box.push(item), "the mailbox is closed");
}

}  // namespace

TEST_CASE("mailbox::push() wakes a thread that sleeps", "[explorer]") {
  const auto model = [](world& all) {
    const owned_mailbox box(new mailbox);
    std::array<letter, 2> letters;
    for (letter& item : letters) {
      all.add_thread([&] { write_and_push(item, *box); });
    }
    all.add_thread([&] {
      for (std::size_t count = 0; count < letters.size(); count += read_all(*box)) {
        sleep_unless_filled(*box, false);
      }
    });
    all.run();
  };
  check_model("two posts to a thread that sleeps", bounded(1), model,
              {{kind::torn, "announce"},
               {kind::torn, "replace"},
               {kind::relaxed, "replace"},
               {kind::relaxed, "take"}});
}

TEST_CASE("mailbox::push_to_idle() reports a thread that waits awake, and that loses no post",
          "[explorer]") {
  bool was_seen = false;
  const auto model = [&](world& all) {
    const owned_mailbox box(new mailbox);
    letter item;
    bool was_idle = false;
    bool rested = false;
    all.add_thread([&] {
      item.text.set(1);
      was_idle = box->push_to_idle(item);
    });
    all.add_thread([&] {
      while (read_all(*box) == 0) {
        rested = true;
        look_for_a_while(*box, 1);
        sleep_unless_filled(*box, false);
      }
    });
    all.run();
    check(rested || !was_idle, "a thread that was busy is reported as idle");
    was_seen = was_seen || was_idle;
  };
  check_model("a post to a thread that waits awake, then sleeps", bounded(3), model,
              {{kind::torn, "announce"}, {kind::torn, "replace"}});
  CHECK(was_seen);
}

TEST_CASE("mailbox: a worker that has been posted to does not count as idle", "[explorer]") {
  const auto model = [](world& all) {
    motet::detail::count_threads_anew();
    const owned_mailbox box(new mailbox);
    std::array<letter, 2> letters;
    for (letter& item : letters) {
      all.add_thread([&] {
        write_and_push(item, *box);
        const auto idle_count = motet::detail::idle_workers.load();
        check(idle_count <= 0 || item.was_read.load(), "a worker with a post counts as idle");
      });
    }
    all.add_thread([&] {
      for (std::size_t count = 0; count < letters.size(); count += read_all(*box)) {
        sleep_unless_filled(*box, true);
      }
    });
    all.run();
    check(motet::detail::idle_workers.load() == 0, "an idle worker was counted twice");
  };
  check_model("two posts to an idle worker", bounded(2), model,
              {{kind::torn, "announce"}, {kind::torn, "replace"}});
}

TEST_CASE("mailbox::nudge() in the owner's signal handler loses no post", "[explorer]") {
  const auto model = [](world& all) {
    const owned_mailbox box(new mailbox);
    letter item;
    bool accepted = false;
    all.add_thread([&] {
      box->nudge();
      read_all(*box);
      box->nudge();
      while (!box->close()) read_all(*box);
    });
    all.add_thread([&] {
      item.text.set(1);
      accepted = box->push(item);
    });
    all.run();
    check(accepted == item.was_read.load(), "a letter was lost");
  };
  check_model("a nudge, a post and the end", {}, model,
              {{kind::torn, "replace"}, {kind::relaxed, "replace"}});
}

TEST_CASE("mailbox::push() to a thread that has ended shows what it has done", "[explorer]") {
  const auto model = [](world& all) {
    const owned_mailbox box(new mailbox);
    plain<int> result(0);
    letter item;
    bool accepted = false;
    all.add_thread([&] {
      box->announce_sleep(false);  // as in a foreign loop, which calls awake() only now and then
      result.set(1);
      while (!box->close()) read_all(*box);
    });
    all.add_thread([&] {
      item.text.set(1);
      accepted = box->push(item);
      if (!accepted) check(result.get() == 1, "the thread's result is missing");
    });
    all.run();
    check(accepted == item.was_read.load(), "a letter was lost");
  };
  check_model("a post to a thread that has ended", {}, model,
              {{kind::relaxed, "push_without_wake"}, {kind::torn, "replace"}});
}

namespace {

/// Takes a letter that `send` pushes, then ends the thread and destroys its mailbox.
template <typename Send>
void end_after_a_post(world& all, Send send) {
  auto* box = new mailbox;
  letter item;
  std::size_t taken = 0;
  all.add_thread([&] { send(item, *box); });
  all.add_thread([&] {
    while (taken == 0) {
      sleep_unless_filled(*box, false);
      taken += read_all(*box);
    }
    while (!box->close()) taken += read_all(*box);
    mailbox::dispose(box);
  });
  all.run();
  check(taken == 1, "a letter was lost");
}

}  // namespace

TEST_CASE("mailbox::close() waits for threads that still wake its thread", "[explorer]") {
  const auto model = [](world& all) { end_after_a_post(all, write_and_push); };
  check_model("a post to a thread that then ends", {}, model,
              {{kind::blind, "close"}, {kind::torn, "announce"}, {kind::relaxed, "finish_wake"}});
}

TEST_CASE("mailbox::close() waits for a deferred wake of its thread", "[explorer]") {
  const auto model = [](world& all) {
    end_after_a_post(all, [](letter& item, mailbox& box) {
      mailbox::deferred_wake wake;
      item.text.set(1);
      check(wake.push(box, item), "the mailbox is closed");
    });
  };
  check_model("a deferred wake of a thread that then ends", {}, model,
              {{kind::blind, "close"}, {kind::torn, "announce"}, {kind::relaxed, "finish_wake"}});
}
