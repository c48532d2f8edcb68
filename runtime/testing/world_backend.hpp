// SPDX-License-Identifier: MIT
// The backend of a simulated world: that of virtual time, with a clock that begins at the same
// instant in every run, and with waits for the world itself.
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

  std::string_view name() const noexcept override { return "world"; }
  bool virtual_time() const noexcept override { return true; }
  time_point now() const noexcept override { return inner_->now() - offset_; }
  void listen(int wake_descriptor) override { inner_->listen(wake_descriptor); }
  void keep_pace(bool enable) noexcept override { inner_->keep_pace(enable); }
  void forget(int number) noexcept override;
  void abandon() noexcept override { inner_->abandon(); }
  bool submit(operation& op) noexcept override;
  void cancel(operation& op) noexcept override;
  void poll(time_point deadline, completions& ended) override;

 private:
  bool is_of_world(const operation& op) const noexcept;
  operation* waiting_for(occasion what) const noexcept;
  void end(operation& op, std::int32_t result, completions& ended) noexcept;
  void stand_idle(time_point deadline, completions& ended);
  void pass_awaited_time(completions& ended);
  void look_for_failure(time_point deadline);
  void pass_events(completions& ended);
  void pass_time(time_point until, completions& ended);

  simulation& inside_;
  const std::unique_ptr<backend> inner_;
  const clock::duration offset_;
  operation* waits_ = nullptr;  // for occasions, few, in the order of their beginning
  completions cancelled_;
};

}}}  // namespace motet::MOTET_ABI::testing
