// SPDX-License-Identifier: MIT
// The backend of a thread of a simulated world: that of virtual time, with the world's clock, its
// network and disks, and waits for the world itself.
#pragma once

#include <cstddef>
#include <memory>
#include <motet/runtime/backend.hpp>
#include <string_view>

#include "testing/simulation.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

class world_backend final : public backend {
 public:
  world_backend(simulation& inside, std::unique_ptr<backend> virtual_time);
  ~world_backend() override;

  std::string_view name() const noexcept override { return "world"; }
  bool virtual_time() const noexcept override { return true; }
  time_point now() const noexcept override { return inside_.time; }
  void listen(int wake_descriptor) override { inner_->listen(wake_descriptor); }
  void forget(int number) noexcept override;
  void abandon() noexcept override { inner_->abandon(); }
  bool submit(operation& op) noexcept override;
  void cancel(operation& op) noexcept override;
  void poll(time_point deadline, completions& ended) override;

  void pass_moment();

  // For any thread of the world.
  bool has_results() const noexcept { return !results_.empty(); }
  /// Tries the operations that the operating system does.
  void look() {
    if (system_operations_ > 0) poll_system(time_point::min());
  }

 private:
  bool is_of_world(const operation& op) const noexcept;
  void cancel_wait(operation& op);
  bool end_waits_for(occasion what);
  void poll_system(time_point deadline);
  void sleep(time_point deadline);
  void look_at_all();
  void stand_idle();
  void pass_awaited_time();
  void look_for_failure(time_point deadline);
  void pass_events();
  void pass_time(time_point until);

  simulation& inside_;
  const std::unique_ptr<backend> inner_;
  std::size_t system_operations_ = 0;  // that wait
  completions results_;
};

}}}  // namespace motet::MOTET_ABI::testing
