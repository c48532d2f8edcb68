// SPDX-License-Identifier: MIT
// Fetches many addresses, some at a time, again where a server has failed, all within a time limit.
//
// usage: fetch_many [--at-once N] [--within SECONDS] < ADDRESSES
//        prints a line for each: its status, its bytes, how long it took
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <motet/http.hpp>
#include <motet/motet.hpp>
#include <string>
#include <string_view>
#include <vector>

using namespace motet;
using namespace std::chrono_literals;

namespace {

struct failed_server : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One try. Throws: failed_server for an answer that may be another one the next time.
std::string fetch(http::client& client, const std::string& address) {
  http::reply answer = client.get(address);
  const std::size_t size = answer.text().size();
  if (answer.status() >= 500) throw failed_server(std::to_string(answer.status()));
  return std::to_string(answer.status()) + ' ' + std::to_string(size);
}

/// Returns: what is to be printed of an address.
std::string report(http::client& client, const std::string& address) {
  const auto start = clock::now();
  std::string outcome;
  try {
    outcome = retry({.attempts = 3, .delay = 50ms}, [&] { return fetch(client, address); });
  } catch (const std::exception& error) {
    outcome = std::string("failed: ") + error.what();
  }
  const auto duration = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - start);
  return outcome + ' ' + std::to_string(duration.count()) + " ms " + address;
}

}  // namespace

int main(int count, char** words) {
  std::size_t at_once = 20;
  double seconds = 60;
  for (int index = 1; index + 1 < count; index += 2) {
    const std::string_view name = words[index];
    if (name == "--at-once") at_once = std::strtoul(words[index + 1], nullptr, 10);
    if (name == "--within") seconds = std::atof(words[index + 1]);
  }
  std::vector<std::string> addresses;
  for (std::string line; std::getline(std::cin, line);) addresses.push_back(line);

  std::size_t finished_count = 0;
  const bool in_time = move_on_after(std::chrono::duration<double>(seconds), [&] {
    http::client client({.connections_per_host = at_once});
    group requests(at_once);
    for (const std::string& address : addresses) {
      requests.spin([&] {
        const std::string line = report(client, address);
        std::cout << line << '\n';
        ++finished_count;
      });
    }
    requests.await_all();
  });
  std::cout << finished_count << " of " << addresses.size()
            << (in_time ? "\n" : ", the time is up\n");
  return in_time ? 0 : 1;
}
