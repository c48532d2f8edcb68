// SPDX-License-Identifier: MIT
// The thread-locals of the program, and the exceptions in flight, of each of a model's threads,
// which are contexts of one thread. Source: dl_iterate_phdr(3); the C++ ABI, __cxa_get_globals.
#pragma once

#include <cxxabi.h>
#include <link.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

namespace explorer {

/// The program's block of thread-locals in this thread, without those of shared libraries.
class thread_local_block {
 public:
  thread_local_block() { ::dl_iterate_phdr(&find, this); }

  std::byte* address = nullptr;
  std::size_t size = 0;
  const std::byte* image = nullptr;  // what the block begins with in a new thread; then zeros
  std::size_t image_size = 0;

 private:
  static int find(dl_phdr_info* program, std::size_t, void* result) {
    auto& block = *static_cast<thread_local_block*>(result);
    block.address = static_cast<std::byte*>(program->dlpi_tls_data);
    for (int i = 0; i < program->dlpi_phnum; ++i) {
      const auto& part = program->dlpi_phdr[i];
      if (part.p_type != PT_TLS) continue;
      block.size = part.p_memsz;
      block.image = reinterpret_cast<const std::byte*>(program->dlpi_addr + part.p_vaddr);
      block.image_size = part.p_filesz;
    }
    return 1;  // the first is the program
  }
};

/// What is saved of a thread while another one runs.
class thread_locals {
 public:
  /// Those of a new thread.
  thread_locals() : saved_(block().size) {
    if (block().image_size > 0) std::memcpy(saved_.data(), block().image, block().image_size);
  }
  void save() {
    if (block().size > 0) std::memcpy(saved_.data(), block().address, block().size);
    std::memcpy(exceptions_.data(), abi::__cxa_get_globals(), exceptions_.size());
  }
  void restore() const {
    if (block().size > 0) std::memcpy(block().address, saved_.data(), block().size);
    std::memcpy(static_cast<void*>(abi::__cxa_get_globals()), exceptions_.data(),
                exceptions_.size());
  }

 private:
  static const thread_local_block& block() {
    static const thread_local_block of_this_thread;
    return of_this_thread;
  }

  std::vector<std::byte> saved_;
  /// A pointer to the exceptions that are caught, and the number of those not yet caught.
  std::array<std::byte, sizeof(void*) + sizeof(unsigned)> exceptions_{};
};

}  // namespace explorer
