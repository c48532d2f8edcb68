// SPDX-License-Identifier: MIT
// The loop that accepts: whatever the kernel answers, each connection is handled once and closed,
// what concerns one connection does not end the server, and what ends it is told.
#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <motet/motet.hpp>
#include <stdexcept>
#include <stop_token>
#include <system_error>
#include <utility>

#include "check.hpp"
#include "io/net/server.hpp"

using fuzz::require;
using namespace std::chrono_literals;

namespace {

constexpr int answers[] = {ECONNABORTED, EPROTO, EMFILE, ENOBUFS, EPERM, ENETDOWN, EBADF, EINVAL};

/// A connection that counts how many there are.
class connection {
 public:
  connection() = default;
  explicit connection(motet::fd accepted) : accepted_(std::move(accepted)) { ++open; }
  connection(connection&& other) noexcept = default;
  connection& operator=(connection&&) = delete;
  ~connection() {
    if (accepted_) --open;
  }
  static inline int open = 0;

 private:
  motet::fd accepted_;
};

class scripted_listener {
 public:
  explicit scripted_listener(FuzzedDataProvider& input) : input_(input) {}

  /// The answer to an accept; when the input is used up, the server is asked to drain.
  std::int32_t accept(motet::net::peer_address& peer) {
    if (input_.remaining_bytes() == 0) {
      stop.request_stop();
      motet::sleep();
    }
    switch (input_.ConsumeIntegralInRange(0, 3)) {
      case 0:
        motet::sleep_for(std::chrono::milliseconds(input_.ConsumeIntegralInRange(0, 50)));
        return -EINTR;
      case 1:
        return refuse(input_.PickValueInArray(answers));
      default:
        return take(peer);
    }
  }

  std::int32_t accept_ready(motet::net::peer_address& peer) {
    return ready_count_-- > 0 ? take(peer) : -EAGAIN;
  }
  void handle() {
    ++handled;
    switch (input_.ConsumeIntegralInRange(0, 3)) {
      case 0:
        throw std::runtime_error("a handler");
      case 1:
        return motet::sleep_for(std::chrono::milliseconds(input_.ConsumeIntegralInRange(0, 200)));
      case 2:
        return motet::sleep();
      default:
        return;
    }
  }

  std::stop_source stop;
  int accepted = 0;
  int handled = 0;
  int closings = 0;
  int fatal = 0;

 private:
  std::int32_t take(motet::net::peer_address& peer) {
    ++accepted;
    constexpr sa_family_t families[] = {AF_UNSPEC, AF_INET, AF_INET6, AF_UNIX, AF_VSOCK};
    peer.name.ss_family = input_.PickValueInArray(families);
    if (peer.name.ss_family == AF_UNIX) peer.length = sizeof(sa_family_t);
    return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  }
  std::int32_t refuse(int error) {
    if (error == EBADF || error == EINVAL) fatal = error;
    return -error;
  }

  FuzzedDataProvider& input_;
  int ready_count_ = 3;
};

void serve(FuzzedDataProvider& input) {
  scripted_listener listener(input);
  int failures = 0;
  motet::net::serve_options options;
  options.drain = listener.stop.get_token();
  options.grace = std::chrono::milliseconds(input.ConsumeIntegralInRange(0, 100));
  options.limit = input.ConsumeIntegralInRange<std::size_t>(0, 3);
  options.on_error = [&](const std::exception_ptr&) { ++failures; };
  const std::function<void(connection)> handler = [&](connection) { listener.handle(); };
  motet::group clock;
  clock.spin([&] {  // handlers that never end may hold all permits
    motet::sleep_for(1min);
    listener.stop.request_stop();
  });
  try {
    const auto cut_count =
        static_cast<int>(motet::net::server<connection>(options, handler, motet::call_site::here())
                             .run([&](auto& peer) { return listener.accept(peer); },
                                  [&](auto& peer) { return listener.accept_ready(peer); },
                                  [&] { ++listener.closings; }));
    require(listener.fatal == 0 && listener.closings == 1);
    require(listener.accepted - listener.handled <= cut_count);  // cut before the handler began
    require(cut_count <= listener.accepted - failures);
  } catch (const std::system_error& error) {
    require(listener.fatal != 0 && error.code().value() == listener.fatal);
  }
  require(connection::open == 0);
  clock.cancel();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  motet::options settings;
  settings.backend = "sim";
  settings.on_notice = [](std::string_view) {};
  motet::run(settings, [&] { serve(input); });
  return 0;
}
