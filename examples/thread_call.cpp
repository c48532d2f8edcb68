// SPDX-License-Identifier: MIT
// A thread that owns a ledger, and others that give it work: a call waits for its result, a post
// does not, a fiber that is spun there is awaited like any other. No lock is needed, since only the
// owner touches the ledger. Run: thread_call
#include <cstdio>
#include <map>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>

int main() {
  std::map<std::string, int> ledger;
  motet::thread owner([] { motet::sleep(); });

  owner.post([&] { ledger["Ann"] = 30; });
  const int sum = owner.call([&] { return ledger["Ann"] += 12; });
  std::printf("Ann has %d\n", sum);

  auto names = owner.spin([&] {
    motet::snooze();
    return ledger.size();
  });
  std::printf("names in the ledger: %zu\n", names.await());

  try {
    owner.call([&] { return ledger.at("Bob"); });
  } catch (const std::out_of_range&) {
    std::puts("Bob is not known; the error came back from the other thread");
  }
  return sum == 42 ? 0 : 1;
}
