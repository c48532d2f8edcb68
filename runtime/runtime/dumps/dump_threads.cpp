// SPDX-License-Identifier: MIT
// See runtime/dumps/dump_threads.hpp. A post asks each thread, which writes its text where it looks
// at its inbox: no other thread may follow the list of its fibers, or the stacks of fibers that may
// run.
#include "runtime/dumps/dump_threads.hpp"

#include <unistd.h>

#include <chrono>
#include <locale>
#include <memory>
#include <motet/cancellation/cancel.hpp>
#include <motet/fibers/fiber.hpp>
#include <motet/sync/semaphore.hpp>
#include <mutex>
#include <new>
#include <ostream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/thread_state.hpp"
#include "runtime/dumps/dump.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Another thread keeps its whole text in memory until it is passed on.
constexpr std::size_t most_of_another = 100'000;
constexpr std::chrono::seconds patience{1};

struct answer {
  pid_t thread;
  std::string text;
  bool given = false;
};

/// Outlives the call, for a thread that answers too late.
struct answers {
  std::mutex lock;
  bool over = false;  // later answers are ignored
  std::vector<answer> all;
  semaphore given{0};
};

struct question : post {
  std::shared_ptr<answers> to;
  std::size_t place;
  dump_options how;
};

std::string text_of(thread_state& thread, dump_options how) {
  if (has_more_fibers(thread, most_of_another)) how.group_by_site = true;
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out.exceptions(std::ios::badbit);  // or a text would be cut where memory was short
  dump(thread, out, how);
  return std::move(out).str();
}

void answer_question(post& item, thread_state& thread) noexcept {
  const std::unique_ptr<question> asked(static_cast<question*>(&item));
  std::string text;
  try {
    text = text_of(thread, asked->how);
  } catch (const std::bad_alloc&) {
    return;  // it counts as a thread that has not answered
  }
  {
    const std::lock_guard guard(asked->to->lock);
    if (asked->to->over) return;
    answer& own = asked->to->all[asked->place];
    own.text = std::move(text);
    own.given = true;
  }
  asked->to->given.release();
}

/// Returns: how many threads have been asked.
std::size_t ask_others(const std::shared_ptr<answers>& to, const dump_options& how) {
  const thread_state* own = self();
  mailbox::for_each([&](mailbox& each) {
    if (own != nullptr && &each == &own->mail()) return;
    auto asked = std::make_unique<question>();
    asked->handle_post = &answer_question;
    asked->to = to;
    asked->how = how;
    const std::lock_guard guard(to->lock);
    asked->place = to->all.size();
    to->all.push_back({each.number_of_thread(), {}});
    if (each.push(*asked)) {
      static_cast<void>(asked.release());
    } else {
      to->all.pop_back();
    }
  });
  const std::lock_guard guard(to->lock);
  return to->all.size();
}

void write_answer(std::ostream& out, const answer& of, bool json) {
  if (json) {
    if (of.given) {
      out << of.text;
    } else {
      out << "{\"thread\": " << of.thread << ", \"error\": \"no answer\"}";
    }
  } else if (of.given) {
    out << "motet: thread " << of.thread << " has these fibers:\n" << of.text;
  } else {
    out << "motet: thread " << of.thread << " has not answered: it computes, or is blocked\n";
  }
}

/// Without the lock the text can be written as slowly as its reader takes it.
std::vector<answer> take_all(answers& from) {
  const std::lock_guard guard(from.lock);
  from.over = true;
  return std::move(from.all);
}

/// Virtual time would be up before another thread could answer.
void await_answers(thread_state& own, answers& to, std::ptrdiff_t asked) {
  if (asked == 0) return;
  if (!own.time.virtual_time()) {
    move_on_after(patience, [&] { to.given.acquire(asked); });
    return;
  }
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!to.given.try_acquire(asked) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    snooze();
  }
}

}  // namespace

void dump_threads(std::ostream& out, const dump_options& how) {
  thread_state& own = here();
  own.deliver();
  const auto found = std::make_shared<answers>();
  const std::size_t asked = ask_others(found, how);
  answer first{::gettid(), {}, true};
  if (how.json) out << "{\"threads\": [";
  write_answer(out, first, how.json);
  dump(own, out, how);
  await_answers(own, *found, static_cast<std::ptrdiff_t>(asked));
  for (const answer& each : take_all(*found)) {
    if (how.json) out << ",\n";
    write_answer(out, each, how.json);
  }
  if (how.json) out << "]}\n";
}

}}}  // namespace motet::MOTET_ABI::detail
