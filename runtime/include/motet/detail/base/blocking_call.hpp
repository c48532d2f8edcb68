// SPDX-License-Identifier: MIT
// A call that a plain thread makes for a fiber, which waits for its end or has abandoned it.
#pragma once

#include <motet/base/call_site.hpp>
#include <motet/detail/base/list.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct blocking_calls_tag;
struct offload_worker;

/// Separate sets of threads: for the program's calls; for motet's own, for example on files, which
/// must not queue behind a database; and for name look-ups, which may take a minute each.
enum class offload_pool : unsigned char { calls, own, names };

class blocking_call : public tagged_link<blocking_calls_tag> {
 public:
  /// Makes the call, however long that takes.
  /// Returns: whether to call notify(); if not, this object may have been destroyed.
  virtual bool run() noexcept = 0;
  /// Notifies the caller of the end of the call, which may end the lifetime of this object. By then
  /// the thread that made the call counts as free again.
  virtual void notify() noexcept = 0;

  offload_pool pool = offload_pool::calls;
  call_site site;       // where the program asked for it
  bool waited = false;  // submit() has found no free thread for it

  // Of platform/offload/blocking_pool.cpp, under its lock:
  offload_worker* worker = nullptr;     // the thread that makes the call
  offload_worker* nested_in = nullptr;  // the thread of the set whose own job waits for the call
  bool abandoned = false;               // the caller has abandoned the call, or is about to

 protected:
  ~blocking_call() = default;
};

}}}  // namespace motet::MOTET_ABI::detail
