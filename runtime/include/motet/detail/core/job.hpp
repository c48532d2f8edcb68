// SPDX-License-Identifier: MIT
// A fiber that another thread asks for.
#pragma once

#include <exception>
#include <memory>
#include <motet/base/call_site.hpp>
#include <motet/detail/base/body.hpp>
#include <motet/detail/core/handle.hpp>
#include <motet/detail/core/locals.hpp>
#include <new>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct remote_start;
struct remote_link;

/// Returns: an executor_stopped.
std::exception_ptr stopped() noexcept;

/// Made by the asking thread. The new fiber owns it once body() was called; refuse() destroys it.
class job {
 public:
  explicit job(call_site origin) noexcept : site(origin) {}
  job(const job&) = delete;
  job& operator=(const job&) = delete;

  /// The kind of body that its fiber runs.
  virtual const body_kind& kind() const noexcept = 0;
  /// Constructs that in `storage`.
  virtual void body(void* storage) noexcept = 0;
  /// Its fiber will run.
  virtual void begin(control_block& fiber) noexcept = 0;
  /// The job will not run.
  virtual void refuse(std::exception_ptr reason) noexcept = 0;

  const call_site site;

 protected:
  ~job() = default;
};

/// A job whose fiber has a parent, or a caller, on the thread that posted it.
class remote_job : public job {
 public:
  explicit remote_job(call_site origin) noexcept : job(origin) {}

  void begin(control_block& fiber) noexcept override;
  void refuse(std::exception_ptr reason) noexcept override;

  // begin() notifies each that is set; refuse() notifies `beginning` if that is set, else `link`.
  remote_start* beginning = nullptr;
  remote_link* link = nullptr;
  control_block* parent = nullptr;  // referenced by the fiber; null: that thread's main fiber
  local_list inherited_locals;

 protected:
  ~remote_job() = default;
  virtual void dispose() noexcept = 0;
};

/// A job that owns its function; the fiber's result is what the function returns.
template <typename F, typename Result>
class spun final : public remote_job {
 public:
  template <typename G>
  spun(G&& function, call_site origin) : remote_job(origin), function_(std::forward<G>(function)) {}

  const body_kind& kind() const noexcept override { return body_kind_of<runner, Result>::kind; }
  void body(void* storage) noexcept override {
    ::new (storage) runner{std::unique_ptr<spun>(this)};
  }

 private:
  struct runner {
    std::unique_ptr<spun> owner;
    Result operator()() { return owner->function_(); }
  };
  friend std::default_delete<spun>;
  ~spun() = default;
  void dispose() noexcept override { delete this; }

  F function_;
};

/// A job in the frame of its caller, which waits until the job is over.
template <typename F, typename Result>
class called final : public remote_job {
 public:
  called(F& function, call_site origin) noexcept : remote_job(origin), function_(&function) {}

  const body_kind& kind() const noexcept override { return body_kind_of<runner, Result>::kind; }
  void body(void* storage) noexcept override { ::new (storage) runner{function_}; }

 private:
  struct runner {
    F* function;
    Result operator()() { return (*function)(); }
  };
  void dispose() noexcept override {}

  F* function_;
};

}}}  // namespace motet::MOTET_ABI::detail
