// SPDX-License-Identifier: MIT
// How a thread comes by its backend; and one that is made when it is first needed, for a forked
// child that only calls exec(3) needs none.
#pragma once

#include <functional>
#include <memory>
#include <motet/backend.hpp>
#include <motet/options.hpp>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Makes the backend that `chosen` and the environment name.
/// Throws: as make_backend().
std::unique_ptr<backend> kernel_for(const options& chosen);

class late_backend final : public backend {
 public:
  /// `make` also has it listen.
  explicit late_backend(std::function<std::unique_ptr<backend>()> make) : make_(std::move(make)) {}

  std::string_view name() const noexcept override { return real().name(); }
  bool virtual_time() const noexcept override { return real().virtual_time(); }
  int wait_descriptor(time_point& due) noexcept override { return real().wait_descriptor(due); }
  time_point now() const noexcept override { return real().now(); }
  bool submit(operation& op) noexcept override { return real().submit(op); }
  void cancel(operation& op) noexcept override { real().cancel(op); }
  void forget(int fd) noexcept override {
    if (real_ != nullptr) real_->forget(fd);
  }
  void abandon() noexcept override {
    if (real_ != nullptr) real_->abandon();
  }
  void poll(time_point deadline, completions& done) override { real().poll(deadline, done); }
  void keep_pace(bool on) noexcept override { real().keep_pace(on); }
  void listen(int wake_descriptor) override { real().listen(wake_descriptor); }

 private:
  backend& real() const {
    if (real_ == nullptr) real_ = make_();
    return *real_;
  }

  std::function<std::unique_ptr<backend>()> make_;
  mutable std::unique_ptr<backend> real_;
};

}}}  // namespace motet::MOTET_ABI::detail
