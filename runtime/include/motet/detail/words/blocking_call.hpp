// SPDX-License-Identifier: MIT
// What a plain thread does for a fiber that waits for it, or did.
#pragma once

#include <motet/detail/words/list.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct blocking_calls_tag;
struct offload_worker;

/// Name resolution, which may take a minute each, has threads of its own.
enum class offload_room : unsigned char { calls, names };

class blocking_call : public tagged_link<blocking_calls_tag> {
 public:
  /// Does it, for however long that takes.
  /// Returns: whether tell() is to be called; otherwise the lifetime of this may be over.
  virtual bool run() noexcept = 0;
  /// Says that it is done, and with that perhaps ends the lifetime of this. The thread that did it
  /// is free again.
  virtual void tell() noexcept = 0;

  offload_room room = offload_room::calls;

  // ground/offload_threads.cpp, under its lock:
  offload_worker* by = nullptr;         // who does it
  offload_worker* nested_in = nullptr;  // a thread of the set itself, whose fiber waits for it
  bool left = false;                    // by who waited for it, or just about to be

 protected:
  ~blocking_call() = default;
};

}}}  // namespace motet::MOTET_ABI::detail
