// SPDX-License-Identifier: MIT
// See house.hpp.
#include "house.hpp"

#include <unistd.h>

#include <cstdlib>
#include <iterator>
#include <motet/observe/debug.hpp>
#include <sstream>
#include <system_error>
#include <utility>

namespace cached_fetch {

using namespace std::chrono_literals;

namespace {

/// Thousands of files, made and removed, are a file system's work rather than this program's: where
/// there is one that is memory, that.
std::filesystem::path place_for_directories() {
  const std::filesystem::path in_memory = "/dev/shm";
  const bool usable = ::access(in_memory.c_str(), W_OK | X_OK) == 0;
  return usable ? in_memory : std::filesystem::temp_directory_path();
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

request_ref house::ask(std::string key, const plan& how) {
  return ui_.ask([&] { return fetcher_.handle_key(std::move(key), how); });
}

void house::cancel(const request_ref& which) {
  ui_.ask([&] { which->cancel(); });
}

std::vector<std::string> house::fibers_alive() {
  std::vector<std::string> found;
  const auto look = [&](motet::thread_pool& pool, std::size_t workers) {
    for (std::size_t i = 0; i < workers; ++i) {
      motet::strand worker(pool);  // each its own, in turn
      const std::string lines = [&] {
        const motet::portal there(worker);
        std::ostringstream out;
        motet::dump(out);
        return std::move(out).str();
      }();
      std::istringstream in(lines);
      for (std::string line; std::getline(in, line);) {
        // But for who looks, the main fiber and the runtime's own.
        const std::size_t site = line.find("; spun at ");
        if (site != std::string::npos && line.find(" running") == std::string::npos &&
            line.find("motet's", site) == std::string::npos) {
          found.push_back(line);
        }
      }
    }
  };
  look(cpu_, size_.cpu);
  look(net_, size_.net);
  return found;
}

own_server::own_server(manners how)
    : server_(0, how), where_(server_.where()), thread_([this] { server_.serve(); }) {
  while (!server_.is_ready()) motet::sleep_for(1ms);
}

motet::net::endpoint nowhere() {
  return motet::net::tcp_listener(motet::net::endpoint::loopback(0)).local_endpoint();
}

std::size_t count_descriptors() {
  const std::filesystem::directory_iterator open("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(open), end(open)));
}

}  // namespace cached_fetch
