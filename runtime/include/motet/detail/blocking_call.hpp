// SPDX-License-Identifier: MIT
// What a plain thread does for a fiber that waits for it, or did.
#pragma once

#include <motet/detail/list.hpp>

namespace motet::inline MOTET_ABI::detail {

struct blocking_calls_tag;

class blocking_call : public tagged_link<blocking_calls_tag> {
 public:
  /// Does it, for however long that takes.
  /// Returns: whether tell() is to be called; otherwise the lifetime of this may be over.
  virtual bool run() noexcept = 0;
  /// Says that it is done, and with that perhaps ends the lifetime of this. The thread that did it
  /// is free again.
  virtual void tell() noexcept = 0;

 protected:
  ~blocking_call() = default;
};

}  // namespace motet::inline MOTET_ABI::detail
