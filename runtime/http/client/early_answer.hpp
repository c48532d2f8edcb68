// SPDX-License-Identifier: MIT
// An answer that comes while the request is still being sent.
#pragma once

#include <exception>
#include <motet/base/errors.hpp>
#include <motet/cancellation/cancel.hpp>
#include <motet/fibers/fiber.hpp>
#include <motet/fibers/group.hpp>
#include <stop_token>
#include <system_error>

namespace motet { inline namespace MOTET_ABI { namespace http {

/// Receives the answer while the request is sent: a server may refuse it, and take no more of it,
/// or answer part by part. Source: RFC 9112, 9.5.
template <typename Answer>
class early_answer {
 public:
  early_answer(Answer& answer, bool to_head) : answer_(answer), to_head_(to_head) {}

  /// Calls `send`, and receives a response that arrives meanwhile.
  /// Returns: the error that stopped the transmission; null if all was sent.
  template <typename Send>
  std::exception_ptr while_sending(Send send) {
    receiver_ = tasks_.spin({.name = "answer", .transient = true}, [this] { receive(); });
    std::exception_ptr failure;
    if (!move_on_when_stopped(refusal_.get_token(), [&] { failure = send(); })) {
      failure = std::make_exception_ptr(std::system_error(
          std::make_error_code(std::errc::broken_pipe), "the server has refused the request"));
    }
    is_sent_ = true;
    if (came_ && !ended_) stop_reading();
    return failure;
  }

  /// Waits for the head. Returns: whether it came. Throws: as answer::read_head().
  bool await() {
    if (!receiver_) return answer_.read_head(to_head_);
    if (!came_ && !ended_) receiver_.await();
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    return came_;
  }

 private:
  void receive() {
    try {
      came_ = answer_.read_head(to_head_);
      if (came_ && answer_.head.status >= 300) {
        refusal_.request_stop();
      } else if (came_ && !is_sent_) {
        answer_.read_ahead();
      }
    } catch (const cancelled&) {
      throw;
    } catch (...) {
      failure_ = std::current_exception();
    }
    ended_ = true;
  }
  void stop_reading() {
    receiver_.cancel();
    try {
      receiver_.await();
    } catch (const fiber_cancelled&) {  // the bytes read so far are kept
    }
  }

  Answer& answer_;
  const bool to_head_;
  std::stop_source refusal_;
  bool is_sent_ = false;
  bool came_ = false;
  bool ended_ = false;
  std::exception_ptr failure_;
  group tasks_;
  fiber_ref receiver_;
};

}}}  // namespace motet::MOTET_ABI::http
