// SPDX-License-Identifier: MIT
// With MOTET_POSIX_MAIN=1 a program's main function runs in a runtime, as its main fiber: for whole
// programs whose calls are to be those of a fiber.
#include <dlfcn.h>

#include <cstdlib>
#include <motet/runtime/run.hpp>
#include <string_view>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

using main_function = int (*)(int, char**, char**);
using start_function = int (*)(main_function, int, char**, void (*)(), void (*)(), void (*)(),
                               void*);

constinit main_function main_of_program = nullptr;

int run_main(int count, char** words, char** environment) {
  return run([&] { return main_of_program(count, words, environment); });
}

bool is_asked_for() noexcept {
  const char* const mode = std::getenv("MOTET_POSIX_MAIN");
  return mode != nullptr && std::string_view(mode) == "1";
}

}}}}  // namespace motet::MOTET_ABI::detail

/// The C library's function that a program starts with.
/// NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
extern "C" int __libc_start_main(int (*main)(int, char**, char**), int count, char** words,
                                 void (*begin)(), void (*end)(), void (*end_linker)(),
                                 void* stack_end) {
  using namespace motet::detail;
  const auto start = reinterpret_cast<start_function>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  if (is_asked_for()) main_of_program = std::exchange(main, &run_main);
  return start(main, count, words, begin, end, end_linker, stack_end);
}
