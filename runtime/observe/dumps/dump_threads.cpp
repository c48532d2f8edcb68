// SPDX-License-Identifier: MIT
// See observe/dumps/dump_threads.hpp. A post asks each thread, which writes its text where it looks
// at its inbox: no other thread may follow the list of its fibers, or the stacks of fibers that may
// run.
#include "observe/dumps/dump_threads.hpp"

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
#include <utility>
#include <vector>

#include "base/system_calls.hpp"
#include "core/thread_state.hpp"
#include "observe/dumps/dump.hpp"

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
  bool ended = false;  // later answers are ignored
  std::vector<answer> list;
  semaphore arrivals{0};
};

struct question : post {
  std::shared_ptr<answers> target;
  std::size_t index;
  dump_options options;
};

std::string text_of(thread_state& thread, dump_options options) {
  if (has_more_fibers(thread, most_of_another)) options.group_by_site = true;
  std::ostringstream output;
  output.imbue(std::locale::classic());
  output.exceptions(std::ios::badbit);  // or a text would be cut where memory was short
  dump(thread, output, options);
  return std::move(output).str();
}

void answer_question(post& item, thread_state& thread) noexcept {
  const std::unique_ptr<question> request(static_cast<question*>(&item));
  std::string text;
  try {
    text = text_of(thread, request->options);
  } catch (const std::bad_alloc&) {
    return;  // it counts as a thread that has not answered
  }
  {
    const std::lock_guard guard(request->target->lock);
    if (request->target->ended) return;
    answer& entry = request->target->list[request->index];
    entry.text = std::move(text);
    entry.given = true;
  }
  request->target->arrivals.release();
}

/// Returns: how many threads have been asked.
std::size_t ask_others(const std::shared_ptr<answers>& target, const dump_options& options) {
  const thread_state* thread = self();
  mailbox::for_each([&](mailbox& inbox) {
    if (thread != nullptr && &inbox == &thread->mail()) return;
    auto request = std::make_unique<question>();
    request->handle_post = &answer_question;
    request->target = target;
    request->options = options;
    const std::lock_guard guard(target->lock);
    request->index = target->list.size();
    target->list.push_back({inbox.number_of_thread(), {}});
    if (inbox.push(*request)) {
      static_cast<void>(request.release());
    } else {
      target->list.pop_back();
    }
  });
  const std::lock_guard guard(target->lock);
  return target->list.size();
}

void write_answer(std::ostream& output, const answer& entry, bool json) {
  if (json) {
    if (entry.given) {
      output << entry.text;
    } else {
      output << "{\"thread\": " << entry.thread << ", \"error\": \"no answer\"}";
    }
  } else if (entry.given) {
    output << "motet: thread " << entry.thread << " has these fibers:\n" << entry.text;
  } else {
    output << "motet: thread " << entry.thread << " has not answered: it computes, or is blocked\n";
  }
}

/// Without the lock the text can be written as slowly as its reader takes it.
std::vector<answer> take_all(answers& source) {
  const std::lock_guard guard(source.lock);
  source.ended = true;
  return std::move(source.list);
}

/// Virtual time would be up before another thread could answer.
void await_answers(thread_state& thread, answers& target, std::ptrdiff_t count) {
  if (count == 0) return;
  if (!thread.time.virtual_time()) {
    move_on_after(patience, [&] { target.arrivals.acquire(count); });
    return;
  }
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!target.arrivals.try_acquire(count) && std::chrono::steady_clock::now() < end) {
    sys::sleep_for(std::chrono::milliseconds(1));
    snooze();
  }
}

}  // namespace

void dump_threads(std::ostream& output, const dump_options& options) {
  thread_state& thread = here();
  thread.deliver();
  const auto replies = std::make_shared<answers>();
  const std::size_t count = ask_others(replies, options);
  answer first{::gettid(), {}, true};
  if (options.json) output << "{\"threads\": [";
  write_answer(output, first, options.json);
  dump(thread, output, options);
  await_answers(thread, *replies, static_cast<std::ptrdiff_t>(count));
  for (const answer& reply : take_all(*replies)) {
    if (options.json) output << ",\n";
    write_answer(output, reply, options.json);
  }
  if (options.json) output << "]}\n";
}

}}}  // namespace motet::MOTET_ABI::detail
