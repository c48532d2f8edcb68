// SPDX-License-Identifier: MIT
// How a thread comes by its backend; and one that is made when it is first needed, for a forked
// child that only calls exec(3) needs none.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <memory>
#include <motet/runtime/backend.hpp>
#include <motet/runtime/options.hpp>

#include "base/system_calls.hpp"
#include "core/mail/mailbox.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Makes the backend that `settings` and the environment name.
/// Throws: as make_backend().
std::unique_ptr<backend> kernel_for(const options& settings);

/// The first switchpoint of the child makes the real one, and throws if that fails. Until then, and
/// where nothing can be thrown, operations fail and polls are pauses between two attempts.
class lazy_backend final : public backend {
 public:
  /// Of a thread with these options, which outlive it. The mailbox gets its descriptor with the
  /// real backend.
  void belongs_to(mailbox& inbox, const options& settings) noexcept {
    inbox_ = &inbox;
    options_ = &settings;
  }
  /// Throws: as kernel_for(), mailbox::open() and backend::listen().
  void make() {
    if (real_ != nullptr) return;
    const being_made guard(making_);
    if (inbox_->wake_descriptor() < 0) inbox_->open();
    auto kernel = kernel_for(*options_);
    kernel->listen(inbox_->wake_descriptor());
    real_ = std::move(kernel);
  }

  std::string_view name() const noexcept override {
    return made_now() ? real_->name() : std::string_view("none");
  }
  bool virtual_time() const noexcept override { return made_now() && real_->virtual_time(); }
  int wait_descriptor(time_point& due) noexcept override {
    return made_now() ? real_->wait_descriptor(due) : -1;
  }
  time_point now() const noexcept override {
    return made_now() ? real_->now() : std::chrono::steady_clock::now();
  }
  bool submit(operation& op) noexcept override {
    if (made_now()) return real_->submit(op);
    op.result = -EAGAIN;
    return true;
  }
  void cancel(operation& op) noexcept override { real_->cancel(op); }
  void forget(int fd) noexcept override {
    if (real_ != nullptr) real_->forget(fd);
  }
  void abandon() noexcept override {
    if (real_ != nullptr) real_->abandon();
  }
  void poll(time_point deadline, completions& results) override {
    if (made_now()) return real_->poll(deadline, results);
    const time_point present = std::chrono::steady_clock::now();
    if (deadline > present)
      sys::sleep_for(std::min(deadline, present + std::chrono::milliseconds(1)) - present);
  }
  void keep_pace(bool enable) noexcept override {
    if (real_ != nullptr) real_->keep_pace(enable);
  }
  void listen(int) override {}

 private:
  struct being_made {
    explicit being_made(bool& flag) noexcept : making(flag) { making = true; }
    being_made(const being_made&) = delete;
    being_made& operator=(const being_made&) = delete;
    ~being_made() { making = false; }
    bool& making;
  };

  /// A fiber may wait in on_notice or make_backend of the program.
  bool made_now() const noexcept {
    if (making_) return false;
    try {
      const_cast<lazy_backend&>(*this).make();
    } catch (const std::exception&) {
    }
    return real_ != nullptr;
  }

  const options* options_ = nullptr;
  mailbox* inbox_ = nullptr;
  std::unique_ptr<backend> real_;
  bool making_ = false;
};

}}}  // namespace motet::MOTET_ABI::detail
