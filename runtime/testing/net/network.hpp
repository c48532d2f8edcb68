// SPDX-License-Identifier: MIT
// The network of a simulated world: its machines, their sockets, and the packets in flight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <motet/base/clock.hpp>
#include <motet/runtime/backend.hpp>
#include <motet/testing.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "platform/simulated_system.hpp"
#include "testing/decisions.hpp"
#include "testing/net/connection.hpp"
#include "testing/net/machine.hpp"
#include "testing/net/simulated_socket.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

class network final : public detail::simulated_system {
 public:
  explicit network(decisions& choices);
  network(const network&) = delete;
  network& operator=(const network&) = delete;
  ~network() override = default;

  /// Machines. The first one is that of the function under test.
  machine& add(std::string name);
  residence first_home() noexcept { return {&machines_.front(), 1}; }
  /// Returns: null if no machine has that address. The loopback address is the asking one's.
  machine* machine_at(std::uint32_t address, machine& asking) noexcept;
  /// Whether a machine has crashed.
  bool any_crashed() const noexcept { return any_crashed_; }
  /// Ends the machine's life: its sockets stop. If `resets`, their peers are told.
  void crash(machine& crashed, bool resets);
  void cut(const machine& source, const machine& target);
  void heal();
  bool is_cut(const machine& source, const machine& target) const;
  /// Returns: who made a socket that is still open; nothing if none of that life is.
  std::optional<call_site> left_open(const residence& home) const;

  /// Decisions.
  clock::duration latency(const machine& source, const machine& target);
  clock::duration time_for(std::size_t bytes) const;
  /// Returns: a number of bytes in [1, most], of which there must be one.
  std::size_t part_of(std::size_t most);
  bool happens(double probability);

  /// What is under way.
  void schedule(clock::time_point due, std::function<void()> event);
  clock::time_point next_event() const noexcept;
  void pass_to(clock::time_point now);
  void keep(const std::shared_ptr<connection>& link);
  /// What a partition or a machine that was down has held back goes on its way.
  void resume();
  /// An operation that waits may be possible now.
  void note_change() noexcept { is_changed_ = true; }

  /// Sockets.
  simulated_socket* listener_at(const machine& owner, const place& name) const noexcept;
  simulated_socket* datagrams_at(const machine& owner, const place& name) const noexcept;
  /// Gives a socket a port of its machine, unless it has one. Returns: 0 or -EADDRINUSE.
  std::int32_t bind_to_any(simulated_socket& socket);
  /// Returns: a descriptor for what `make` makes, or -EMFILE, -ENETDOWN.
  std::int32_t open(const residence& home,
                    const std::function<std::unique_ptr<simulated_socket>()>& make);
  void forget(int fd);

  /// Operations, as a backend's. One that waits ends in `results`.
  bool submit(operation& op, completions& results);
  /// Returns: whether it waits here.
  bool cancel(operation& op);
  void complete();

  bool has(int fd) const noexcept override { return sockets_.contains(fd); }
  int socket(int family, int kind) noexcept override;
  int bind(int fd, const sockaddr* address, socklen_t length) noexcept override;
  int listen(int fd, int backlog) noexcept override;
  int connect_datagrams(int fd, const sockaddr* peer, socklen_t length) noexcept override;
  int accept_now(int fd, sockaddr* address, socklen_t* length) noexcept override;
  int getsockname(int fd, sockaddr* address, socklen_t* length) noexcept override;
  int getpeername(int fd, sockaddr* address, socklen_t* length) noexcept override;
  int shutdown(int fd, int direction) noexcept override;
  void hand_over(int fd) noexcept override { handed_over_.insert(fd); }
  bool has_input(int fd) noexcept override;
  std::optional<std::string> address_of(std::string_view host) override;
  void await_offload_thread() override;

  network_rules rules;
  std::function<void(std::string)> on_failure;  // of the simulation itself

 private:
  using route = std::pair<std::uint32_t, std::uint32_t>;  // from, to
  struct binding {
    int kind = 0;
    std::uint32_t address = 0;
    std::uint16_t port = 0;
    auto operator<=>(const binding&) const = default;
  };
  struct waiting_operation {
    operation* op = nullptr;
    completions* results = nullptr;  // of the thread that has submitted it
  };

  residence home_of_caller();
  std::int32_t bind_name(simulated_socket& socket, place name);
  bool is_quiet(int fd) const;
  std::optional<std::int32_t> attempt(operation& op);
  std::vector<simulated_socket*> sockets_of(const residence& home) const;
  simulated_socket* bound_at(int kind, const machine& owner, const place& name) const noexcept;

  decisions& choices_;
  std::deque<machine> machines_;
  std::map<int, std::unique_ptr<simulated_socket>> sockets_;
  std::map<binding, simulated_socket*> bound_;
  std::multimap<clock::time_point, std::function<void()>> events_;
  std::vector<std::weak_ptr<connection>> connections_;
  std::size_t enough_connections_ = 64;  // until those that are gone are dropped
  std::uint64_t sockets_made_ = 0;
  std::set<int> handed_over_;  // the descriptors of which forget() does not mean the end
  std::set<route> cut_;
  std::vector<waiting_operation> waits_;  // in the order of their submission
  bool is_changed_ = false;
  bool any_crashed_ = false;
};

}}}  // namespace motet::MOTET_ABI::testing
