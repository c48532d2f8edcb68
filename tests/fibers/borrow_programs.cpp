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
int fail_or_wait(const text& lent, ending end) {
  const borrower local(lent);
  if (end == ending::a_borrower_fails) {
    motet::snooze();
    throw std::runtime_error("a borrower failed");
  }
  motet::sleep();
  return 1;
}

/// And the second: it returns something, in a while, if the first one fails.
int return_or_wait(const text& lent, ending end) {
  const borrower local(lent);
  if (end == ending::a_borrower_fails) {
    motet::sleep_for(1ms);
  } else {
    motet::sleep();
  }
  return 2;
}

/// What is captured borrows as well, and is destroyed though the body may never have run.
void lend_to_group(const text& lent, ending end) {
  motet::group fibers;
  fibers.spin([&, payload = std::make_unique<borrower>(lent)] { fail_or_wait(lent, end); });
  fibers.spin([&, payload = std::make_unique<borrower>(lent)] { return_or_wait(lent, end); });
  fibers.await_all();
}

void lend_to_await_all(const text& lent, ending end) {
  motet::await_all([&] { return fail_or_wait(lent, end); },
                   [&] { return return_or_wait(lent, end); });
}

void lend_to_await_any(const text& lent, ending end) {
  motet::await_any([&] { return fail_or_wait(lent, end); },
                   [&] { return return_or_wait(lent, end); });
}

void lend_to_first_value(const text& lent, ending end) {
  motet::first_value([&] { return std::optional(fail_or_wait(lent, end)); },
                     [&] { return std::optional(return_or_wait(lent, end)); });
}

/// The mistake: what is lent is gone before the parent's children are ended.
void lend_to_free_spin(const text& lent, ending end) {
  motet::spin([&lent, end] { fail_or_wait(lent, end); });
  motet::snooze();
}

using lender = void (*)(const text& lent, ending end);

/// In a frame of its own: clang does not watch the locals of a function that has assembly in it, as
/// each switchpoint has.
[[gnu::noinline]] void lend_local(lender lend, ending end) {
  const text local;
  lend(local, end);
}

void end_owner(lender lend, ending end) {
  const std::runtime_error failure("the owner failed");
  try {
    auto owner = motet::spin([&failure, lend, end] {
      if (end == ending::left_early) motet::current().raise(failure);
      lend_local(lend, end);
    });
    for (int turns = 0; turns < 4; ++turns) motet::snooze();
    if (end == ending::left_late) owner.raise(failure);
    if (end == ending::owner_cancelled) owner.cancel("enough");
    owner.await();
  } catch (const std::runtime_error&) {
    // As was to be: it has failed, or was cancelled.
  }
}

void end_in_each_way(lender lend) {
  for (const ending end :
       {ending::a_borrower_fails, ending::left_early, ending::left_late, ending::owner_cancelled}) {
    uses = 0;
    end_owner(lend, end);
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
  const auto entry = count == 2 ? cases.find(words[1]) : cases.end();
  if (entry == cases.end()) return 64;
  entry->second();
}
