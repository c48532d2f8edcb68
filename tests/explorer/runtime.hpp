// SPDX-License-Identifier: MIT
// A runtime in a thread of a model: its backend has no operations, and time passes when no thread
// can go on.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <motet/runtime/backend.hpp>
#include <motet/runtime/options.hpp>
#include <motet/runtime/run.hpp>
#include <string_view>
#include <utility>

#include "explorer/explore.hpp"
#include "explorer/model_test.hpp"
#include "platform/ticks.hpp"

namespace explorer {

class still_backend final : public motet::backend {
 public:
  std::string_view name() const noexcept override { return "still"; }
  time_point now() const noexcept override { return here().now(); }
  bool submit(motet::operation& op) noexcept override {
    op.result = -ENOSYS;
    return true;
  }
  void cancel(motet::operation&) noexcept override {}
  void poll(time_point deadline, motet::completions&) override {
    if (deadline != time_point::min()) here().read_event(wake_descriptor_, deadline);
  }
  void listen(int wake_descriptor) override { wake_descriptor_ = wake_descriptor; }

 private:
  int wake_descriptor_ = -1;
};

/// Measured here, by the processor's own counter.
inline const std::uint64_t ticks_of_second = motet::detail::ticks_in(std::chrono::seconds(1));

inline motet::options still_options() {
  motet::options result;
  result.busy_wait = {};
  result.make_backend = [](const motet::backend_options&) {
    return std::make_unique<still_backend>();
  };
  result.on_notice = [](std::string_view) {};
  result.on_unhandled = [](std::exception_ptr) {};
  return result;
}

/// For models with runtimes: one stale load more than preemptions.
inline limits bounded_runtime(std::size_t preemptions) {
  limits most = bounded(preemptions);
  most.stale_loads = *most.preemptions + 1;
  most.checks_destruction = false;
  return most;
}

/// A thread of the model in which `body` is the main fiber.
template <typename Body>
void add_runtime(world& all, Body body, motet::options settings = still_options()) {
  all.add_thread(
      [body = std::move(body), settings = std::move(settings)] { motet::run(settings, body); });
}

}  // namespace explorer
