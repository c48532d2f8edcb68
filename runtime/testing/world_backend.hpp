// SPDX-License-Identifier: MIT
// The backend of a thread of a simulated world: that of virtual time, with the world's clock, its
// network and disks, and waits for the world itself.
#pragma once

#include <cstdint>
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
  void keep_pace(bool enable) noexcept override { inner_->keep_pace(enable); }
  void forget(int number) noexcept override;
  void abandon() noexcept override { inner_->abandon(); }
  bool submit(operation& op) noexcept override;
  void cancel(operation& op) noexcept override;
  void poll(time_point deadline, completions& ended) override;

  // For any thread of the world.
  bool has_results() const noexcept { return !results_.empty(); }
  /// Tries the operations that the operating system does.
  void look() { inner_->poll(time_point::min(), results_); }
  /// Returns: whether a fiber waited for this occasion.
  bool end_wait_for(occasion what) noexcept;

 private:
  bool is_of_world(const operation& op) const noexcept;
  void end(operation& op, std::int32_t result) noexcept;
  void sleep(time_point deadline);
  void look_at_all();
  void stand_idle();
  void pass_awaited_time();
  void look_for_failure(time_point deadline);
  void pass_events();
  void pass_time(time_point until);
  bool end_any_wait_for(occasion what);

  simulation& inside_;
  const std::unique_ptr<backend> inner_;
  operation* waits_ = nullptr;  // for occasions, few, in the order of their beginning
  completions results_;
};

}}}  // namespace motet::MOTET_ABI::testing
