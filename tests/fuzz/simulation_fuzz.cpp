// SPDX-License-Identifier: MIT
// Bytes that make every decision of a simulation: whatever the order of fibers and threads, and
// whoever is cancelled, an item of a channel reaches one receiver, or stays.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <motet/motet.hpp>
#include <motet/testing.hpp>
#include <set>
#include <span>
#include <stdexcept>
#include <vector>

namespace {

using motet::testing::world;

std::chrono::microseconds pause(world& in) {
  return std::chrono::microseconds(in.random(2) == 0 ? 0 : in.random(20));
}

void exchange(world& in) {
  constexpr int items_of_each = 3;
  motet::channel<int> items(in.random(3));
  std::multiset<int> received;
  std::multiset<int> sent;
  std::vector<motet::fiber<void>> senders;
  {
    const motet::thread receiver([&] {
      while (const auto item = items.pop()) received.insert(*item);
    });
    for (int sender = 0; sender < 2; ++sender) {
      senders.push_back(motet::spin([&, sender] {
        for (int i = 0; i < items_of_each; ++i) {
          items.push(sender * items_of_each + i);
          sent.insert(sender * items_of_each + i);
          motet::sleep_for(pause(in));
        }
      }));
    }
    motet::sleep_for(pause(in));
    if (in.random(2) == 1) senders.front().cancel();
    for (const auto& each : senders) {
      try {
        each.await();
      } catch (const motet::fiber_cancelled&) {
      }
    }
    items.close();
    receiver.await();
  }
  if (received != sent) throw std::runtime_error("an item was lost, or came twice");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  motet::testing::fuzz(std::as_bytes(std::span(data, size)), &exchange,
                       {.how = motet::testing::order::any});
  return 0;
}
