// SPDX-License-Identifier: MIT
// The range that transform_in() returns.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <motet/base/call_site.hpp>
#include <motet/base/errors.hpp>
#include <motet/cancellation/cancel.hpp>
#include <motet/detail/core/internal_shield.hpp>
#include <motet/detail/platform/process.hpp>
#include <motet/detail/threads/loop_body.hpp>
#include <motet/sync/future.hpp>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Cannot be moved: the jobs refer to it. `Range` is a reference to the caller's range, or the type
/// of one that is moved in.
template <typename Pool, typename Range, typename F>
class ordered_results {
  using reference = std::ranges::range_reference_t<Range>;
  // What a range that can be read only once refers to is gone after its next element.
  using element = std::conditional_t<std::ranges::forward_range<Range>, reference,
                                     std::ranges::range_value_t<Range>>;
  using argument = element&&;
  static_assert(std::invocable<F&, argument>,
                "the function of transform_in() must accept an element of the range");
  using result = std::remove_cvref_t<std::invoke_result_t<F&, argument>>;
  static_assert(!std::is_void_v<result>,
                "the function of transform_in() must return a value; parallel_for() needs none");

 public:
  ordered_results(Pool& pool, Range&& elements, F f, std::size_t in_flight, call_site site)
      : pool_(&pool),
        site_(site),
        in_flight_(in_flight),
        elements_(std::forward<Range>(elements)),
        f_(std::move(f)) {
    if (in_flight == 0)
      throw std::invalid_argument("transform_in: the number in flight must be at least 1, not 0");
  }
  ordered_results(const ordered_results&) = delete;
  ordered_results& operator=(const ordered_results&) = delete;
  ~ordered_results() {
    if (process_ != this_process()) return;  // whose jobs are the parent's
    stop_.request_stop();
    const internal_shield safe;  // the jobs use this object
    for (; !jobs_.empty(); jobs_.pop_front()) jobs_.front().wait();
  }

  class iterator {
   public:
    using value_type = result;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    explicit iterator(ordered_results& range) noexcept : range_(&range) {}
    iterator(iterator&&) noexcept = default;
    iterator& operator=(iterator&&) noexcept = default;

    result& operator*() const noexcept { return *range_->current_; }
    result* operator->() const noexcept { return &*range_->current_; }
    iterator& operator++() {
      range_->read_next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const noexcept {
      return !range_->current_.has_value();
    }

   private:
    ordered_results* range_;
  };

  iterator begin() {
    check_may_wait_here("transform_in");
    next_.emplace(std::ranges::begin(elements_));
    read_next();
    return iterator(*this);
  }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  void read_next() {
    current_.reset();
    while (jobs_.size() < in_flight_ && *next_ != std::ranges::end(elements_)) submit_next();
    if (jobs_.empty()) return;
    jobs_.front().wait();
    future<result> job = std::move(jobs_.front());
    jobs_.pop_front();
    current_.emplace(ready_future::take(job));
  }

  void submit_next() {
    auto job = [this, item = job_element(**next_)]() mutable { return call(item.get()); };
    jobs_.emplace_back();  // first: a job that has been submitted must be waited for
    try {
      jobs_.back() = pool_->submit(std::move(job), site_);
    } catch (...) {
      jobs_.pop_back();
      throw;
    }
    ++*next_;
  }

  /// An element as a job has it: a reference, or a value that is passed on.
  struct job_element {
    explicit job_element(reference source) : value(static_cast<reference&&>(source)) {}
    argument get() noexcept { return static_cast<argument>(value); }
    element value;
  };

  result call(argument item) {
    if (stop_.stop_requested()) throw executor_stopped();  // seen by nobody: the range is ending
    std::optional<result> outcome = move_on_when_stopped(
        stop_.get_token(), [&]() -> result { return std::invoke(f_, static_cast<argument>(item)); },
        site_);
    if (!outcome) throw executor_stopped();
    return *std::move(outcome);
  }

  const std::uint32_t process_ = this_process();
  Pool* pool_;
  const call_site site_;
  const std::size_t in_flight_;
  Range elements_;
  F f_;
  std::stop_source stop_;
  std::optional<std::ranges::iterator_t<Range>> next_;
  std::deque<future<result>> jobs_;  // in the order of the elements
  std::optional<result> current_;
};

}}}  // namespace motet::MOTET_ABI::detail
