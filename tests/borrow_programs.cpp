// SPDX-License-Identifier: MIT
// Fibers that borrow a local of whoever spun them, and use it until their clean-up is over;
// borrow_test.py runs each case under AddressSanitizer. A case prints, for each way to come to an
// end, how often the local was used.
#include <cstddef>
#include <cstdio>
#include <map>
#include <memory>
#include <motet/motet.hpp>
#include <optional>
#include <stdexcept>
#include <string_view>

using namespace std::chrono_literals;

namespace {

std::size_t uses = 0;

/// What is borrowed: bytes in the frame of its owner, and nothing elsewhere.
struct text {
  char words[16] = "borrowed";
};

/// Uses it at its beginning, and at its end after others have run.
class borrower {
 public:
  explicit borrower(const text& lent) : text_(lent) { use(); }
  borrower(const borrower&) = delete;
  borrower& operator=(const borrower&) = delete;
  ~borrower() {
    motet::shield([] {
      motet::snooze();
      motet::snooze();
    });
    use();
  }

 private:
  void use() const {
    const volatile char& first = text_.words[0];  // must be looked at, each time
    if (first == 'b') ++uses;
  }

  const text& text_;
};

/// How it comes to an end.
enum class ending {
  a_borrower_fails,
  left_early,       // the owner throws: those who borrow are cancelled before they have run
  left_late,        // the owner throws when they wait
  owner_cancelled,  // when they wait
};

/// What the first of two borrowers does: it waits to be ended, unless it is to fail.
int fail_or_wait(const text& lent, ending how) {
  const borrower here(lent);
  if (how == ending::a_borrower_fails) {
    motet::snooze();
    throw std::runtime_error("a borrower failed");
  }
  motet::sleep();
  return 1;
}

/// And the second: it returns something, in a while, if the first one fails.
int return_or_wait(const text& lent, ending how) {
  const borrower here(lent);
  if (how == ending::a_borrower_fails) {
    motet::sleep_for(1ms);
  } else {
    motet::sleep();
  }
  return 2;
}

/// What is captured borrows as well, and is destroyed though the body may never have run.
[[gnu::noinline]] void lend_to_group(ending how) {
  const text local;
  motet::group fibers;
  fibers.spin([&, held = std::make_unique<borrower>(local)] { fail_or_wait(local, how); });
  fibers.spin([&, held = std::make_unique<borrower>(local)] { return_or_wait(local, how); });
  fibers.await_all();
}

[[gnu::noinline]] void lend_to_await_all(ending how) {
  const text local;
  motet::await_all([&] { return fail_or_wait(local, how); },
                   [&] { return return_or_wait(local, how); });
}

[[gnu::noinline]] void lend_to_await_any(ending how) {
  const text local;
  motet::await_any([&] { return fail_or_wait(local, how); },
                   [&] { return return_or_wait(local, how); });
}

[[gnu::noinline]] void lend_to_first_value(ending how) {
  const text local;
  motet::first_value([&] { return std::optional(fail_or_wait(local, how)); },
                     [&] { return std::optional(return_or_wait(local, how)); });
}

/// The mistake: the local is gone before the parent's children are ended.
[[gnu::noinline]] void lend_to_free_spin(ending how) {
  const text local;
  motet::spin([&local, how] { fail_or_wait(local, how); });
  motet::snooze();
}

void end_owner(void (*lend)(ending), ending how) {
  const std::runtime_error failure("the owner failed");
  try {
    auto owner = motet::spin([&failure, lend, how] {
      if (how == ending::left_early) motet::current().raise(failure);
      lend(how);
    });
    for (int turns = 0; turns < 4; ++turns) motet::snooze();
    if (how == ending::left_late) owner.raise(failure);
    if (how == ending::owner_cancelled) owner.cancel("enough");
    owner.await();
  } catch (const std::runtime_error&) {
    // As was to be: it has failed, or was cancelled.
  }
}

void end_in_each_way(void (*lend)(ending)) {
  for (const ending how :
       {ending::a_borrower_fails, ending::left_early, ending::left_late, ending::owner_cancelled}) {
    uses = 0;
    end_owner(lend, how);
    std::printf("%zu\n", uses);
  }
}

const std::map<std::string_view, void (*)()> cases = {
    {"borrow_in_free_spin", [] { end_owner(lend_to_free_spin, ending::left_late); }},
    {"borrow_in_group", [] { end_in_each_way(lend_to_group); }},
    {"borrow_in_await_all", [] { end_in_each_way(lend_to_await_all); }},
    {"borrow_in_await_any", [] { end_in_each_way(lend_to_await_any); }},
    {"borrow_in_first_value", [] { end_in_each_way(lend_to_first_value); }},
};

}  // namespace

int main(int count, char** words) {
  const auto chosen = count == 2 ? cases.find(words[1]) : cases.end();
  if (chosen == cases.end()) return 64;
  chosen->second();
}
