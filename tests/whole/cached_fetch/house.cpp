// SPDX-License-Identifier: MIT
#include "house.hpp"

#include <unistd.h>

#include <cstdlib>
#include <iterator>
#include <motet/observe/debug.hpp>
#include <sstream>
#include <system_error>
#include <utility>

namespace fetch_test {

using namespace std::chrono_literals;

namespace {

/// Prefers a file system in memory, because the checks do not measure a disk.
std::filesystem::path place_for_directories() {
  const std::filesystem::path memory = "/dev/shm";
  const bool is_usable = ::access(memory.c_str(), W_OK | X_OK) == 0;
  return is_usable ? memory : std::filesystem::temp_directory_path();
}

}  // namespace

temporary_directory::temporary_directory() {
  std::string name = (place_for_directories() / "cached_fetch_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::system_error(errno, std::system_category(), "mkdtemp");
  }
  path_ = name;
}

temporary_directory::~temporary_directory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

house::house(size_of_house size, const std::filesystem::path& cache_directory, event_log& log)
    : size_(size),
      cpu_(size.cpu, "cpu"),
      net_(size.net, "net"),
      fetcher_(cpu_, net_, ui_, cache_directory, log) {}

house::~house() {
  cpu_.drain();
}

question_ref house::ask(std::string key, const plan& course) {
  return ui_.ask([&] { return fetcher_.handle_key(std::move(key), course); });
}

void house::cancel(const question_ref& wish) {
  ui_.ask([&] { wish->cancel(); });
}

std::vector<std::string> house::fibers_alive() {
  std::vector<std::string> result;
  const auto search = [&](motet::thread_pool& pool, std::size_t workers) {
    for (std::size_t i = 0; i < workers; ++i) {
      motet::strand worker(pool);  // the strands of a pool take its workers in turn
      const std::string lines = [&] {
        const motet::portal visit(worker);
        std::ostringstream output;
        motet::dump(output);
        return std::move(output).str();
      }();
      std::istringstream input(lines);
      for (std::string line; std::getline(input, line);) {
        // Without the running fiber, the main fiber and those of motet.
        const std::size_t site = line.find("; spun at ");
        if (site != std::string::npos && line.find(" running") == std::string::npos &&
            line.find("motet's", site) == std::string::npos) {
          result.push_back(line);
        }
      }
    }
  };
  search(cpu_, size_.cpu);
  search(net_, size_.net);
  return result;
}

own_server::own_server(manners conduct)
    : server_(0, conduct), where_(server_.where()), thread_([this] { server_.serve(); }) {
  while (!server_.is_ready()) motet::sleep_for(1ms);
}

motet::net::endpoint nowhere() {
  return motet::net::tcp_listener(motet::net::endpoint::loopback(0)).local_endpoint();
}

std::size_t count_descriptors() {
  const std::filesystem::directory_iterator descriptors("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(descriptors), end(descriptors)));
}

}  // namespace fetch_test
