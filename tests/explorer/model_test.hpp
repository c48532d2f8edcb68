// SPDX-License-Identifier: MIT
// How a model of the library's code is checked: as it is, and with each mistake that it must find.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>

#include "catch.hpp"
#include "explorer/explore.hpp"
#include "explorer/limits.hpp"
#include "explorer/mutation.hpp"
#include "support.hpp"

namespace explorer {

using kind = mutation::kind;

/// For models of many steps: one preemption more when tests run in full.
inline limits bounded(std::size_t preemptions) {
  limits most;
  most.preemptions = testing::scaled(preemptions + 1, preemptions);
  most.executions = testing::scaled(100'000'000, 1'000'000);
  return most;
}

inline std::string text_of(const mutation& mistake) {
  const char* how = mistake.what == kind::relaxed ? "relaxed order in "
                    : mistake.what == kind::blind ? "no check in "
                                                  : "a load and a store in ";
  return how + std::string(mistake.place) + "()";
}

/// Returns: whether an execution fails with the mistake. They run in a child process, which may
/// crash if the mistake says so.
template <typename Model>
bool is_found(limits most, Model model, const mutation& mistake) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGSEGV, SIG_DFL);
    ::signal(SIGABRT, SIG_DFL);
    ::alarm(static_cast<unsigned>(testing::scaled(1'000, 60)));
    most.mistakes = {mistake};
    const report result = explore(most, model);
    std::printf("  %s: %s %zu executions\n", text_of(mistake).c_str(),
                result.failure.substr(0, result.failure.find('\n')).c_str(), result.executions);
    std::fflush(stdout);
    ::_exit(result.failure.empty() || result.is_inconclusive ? 0 : 1);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return false;
  const bool crashed = WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
  if (crashed) std::printf("  %s: a crash\n", text_of(mistake).c_str());
  return (crashed && mistake.crashes) || (WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

/// Every execution passes; with any of the mistakes, one fails.
template <typename Model>
void check_model(const char* name, const limits& most, Model model, const mutations& mistakes) {
  const auto start = std::chrono::steady_clock::now();
  const report result = explore(most, model);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  std::printf("%s: %zu executions, %zu redundant, %zu limited, %.2f s%s\n", name, result.executions,
              result.redundant, result.limited, time.count(), result.complete ? "" : ", not all");
  INFO(name << ": " << result.failure);
  CHECK(result.failure.empty());
  CHECK(result.complete);
  for (const mutation& mistake : mistakes) {
    INFO(name << ", with " << text_of(mistake));
    CHECK(is_found(most, model, mistake));
  }
}

}  // namespace explorer
