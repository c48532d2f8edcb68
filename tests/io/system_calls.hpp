// SPDX-License-Identifier: MIT
// What a verb of motet/io/io.hpp makes of a descriptor, beside what the plain system call does.
// Each call is made by a process of its own, with a descriptor that has just been made.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <list>
#include <motet/motet.hpp>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "io/kinds_of_files.hpp"
#include "quiet.hpp"
#include "support.hpp"

namespace testing {

using namespace std::chrono_literals;

struct verb {
  const char* name;
  /// Returns: the system call's result, or minus an errno value.
  long (*plain)(int fd);
  long (*of_motet)(int fd, std::error_code& error);
  /// It never waits: EAGAIN is a result.
  bool at_once = false;
};

/// Returns: `result` of a plain call that has just returned, or minus the errno value it has set.
inline long told(long result) {
  return result < 0 ? -errno : result;
}

struct outcome {
  enum kind_of_end { ended, waits, has_none, died, hangs };
  kind_of_end end = hangs;
  long value = 0;  // the result, minus an errno value, or a signal
  friend bool operator==(const outcome&, const outcome&) = default;

  std::string text() const {
    switch (end) {
      case ended: {
        const char* name = value < 0 ? ::strerrorname_np(static_cast<int>(-value)) : nullptr;
        return name != nullptr ? name : std::to_string(value);
      }
      case waits:
        return "waits";
      case has_none:
        return "has none of this kind";
      case died:
        return "dies by signal " + std::to_string(value);
      case hangs:
        return "hangs";
    }
    return {};
  }
};

/// A call that is made in a process of its own.
class attempt {
 public:
  explicit attempt(const std::function<outcome()>& call) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    child_ = ::fork();
    if (child_ == 0) {
      // High, so that it is in nobody's way.
      const int answers = ::fcntl(ends[1], F_DUPFD_CLOEXEC, 200);
      ::close(ends[0]);
      ::close(ends[1]);
      const outcome answer = call();
      ::_exit(::write(answers, &answer, sizeof answer) == sizeof answer ? 0 : 1);
    }
    ::close(ends[1]);
    answers_ = motet::fd(ends[0]);
  }
  attempt(const attempt&) = delete;
  attempt& operator=(const attempt&) = delete;
  ~attempt() {
    if (child_ > 0) await_end();
  }

  outcome await_end() {
    outcome answer;
    pollfd answered{answers_.get(), POLLIN, 0};
    ::poll(&answered, 1, patience);
    const bool overdue = answered.revents == 0;
    if (!overdue && ::read(answers_.get(), &answer, sizeof answer) != sizeof answer) {
      answer.end = outcome::died;
    }
    if (overdue) ::kill(child_, SIGKILL);
    int status = 0;
    ::waitpid(std::exchange(child_, 0), &status, 0);
    if (answer.end == outcome::died) answer.value = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return answer;
  }

 private:
  /// Far more than any of these calls takes, in milliseconds.
  static constexpr int patience = 2'000;

  pid_t child_ = 0;
  motet::fd answers_;
};

/// How long a call may take before it is said to wait.
using time_limit = std::chrono::milliseconds;

inline outcome made_by(const kind& subject, const std::function<outcome(int)>& call) {
  const int fd = subject.make();
  if (fd < 0 && fd != minus_one) return {outcome::has_none};
  return call(fd == minus_one ? -1 : fd);
}

/// What the plain call does. That it waits is found out by signals that interrupt it.
inline outcome plainly(const verb& calls, const kind& subject, time_limit limit) {
  ::signal(SIGPIPE, SIG_IGN);
  return made_by(subject, [&](int fd) -> outcome {
    struct sigaction interrupts{};
    interrupts.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &interrupts, nullptr);
    const timeval pause{0, std::chrono::microseconds(limit).count()};
    const itimerval period{pause, pause};
    const itimerval never{};
    const bool may_wait = !calls.at_once && (::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
    ::setitimer(ITIMER_REAL, &period, nullptr);
    const long result = calls.plain(fd);
    ::setitimer(ITIMER_REAL, &never, nullptr);
    if (result == -EINTR || (may_wait && result == -EAGAIN)) return {outcome::waits};
    return {outcome::ended, result};
  });
}

/// What the verb does, which is interrupted if it has not returned in time.
inline outcome by_motet(const verb& calls, int fd, time_limit limit) {
  outcome answer{outcome::waits};
  const auto call = [&] {
    std::error_code error;
    long result = 0;
    try {
      result = calls.of_motet(fd, error);
    } catch (const std::system_error& refused) {
      error = refused.code();
    } catch (const std::invalid_argument&) {
      error = std::make_error_code(std::errc::invalid_argument);
    }
    if (error == std::errc::operation_canceled) return;
    answer = {outcome::ended, error ? -error.value() : result};
  };
  if (!on_sim()) {
    motet::move_on_after(limit, call);
    return answer;
  }
  std::stop_source stop;  // as the time of sim is not the kernel's
  std::thread([stop, limit]() mutable {
    std::this_thread::sleep_for(limit);
    stop.request_stop();
  }).detach();
  motet::move_on_when_stopped(stop.get_token(), call);
  return answer;
}

inline outcome in_a_runtime(const verb& calls, const kind& subject, time_limit limit) {
  outcome answer;
  motet::run(quiet(), [&] {
    answer = made_by(subject, [&](int fd) { return by_motet(calls, fd, limit); });
  });
  return answer;
}

/// A verb and a kind that are tried at the same time as others.
struct pair {
  pair(const verb& action, const kind& target, time_limit limit)
      : calls(action),
        subject(target),
        plain([&, limit] { return plainly(calls, subject, limit); }),
        tried([&, limit] { return in_a_runtime(calls, subject, limit); }) {}

  void await_end() {
    reference = plain.await_end();
    result = tried.await_end();
  }
  std::string text() const {
    return std::string(calls.name) + " × " + std::string(subject.name) + ": plain says " +
           reference.text() + ", motet says " + result.text();
  }

  const verb& calls;
  const kind& subject;
  attempt plain;
  attempt tried;
  outcome reference;
  outcome result;
};

/// A difference that the documentation states. An empty text stands for all.
struct difference {
  std::string_view verb;
  std::string_view kind;
  std::string_view plain;
  std::string_view of_motet;
  const char* reason;

  bool covers(const pair& trial) const {
    const auto fits = [](std::string_view pattern, std::string_view text) {
      return pattern.empty() || pattern == text;
    };
    return fits(verb, trial.calls.name) && fits(kind, trial.subject.name) &&
           fits(plain, trial.reference.text()) && fits(of_motet, trial.result.text());
  }
};

/// One pair of a verb and a kind in so many is tried, spread over both: nearly all of the time is
/// spent waiting for calls that do not return, and in forks, which a sanitizer slows down.
inline std::size_t pairs_per_try() {
  return scaled(1, under_asan || under_tsan ? 8 : 4);
}

/// Returns: each pair of a verb and a kind in which the verb does not do as the system call does,
///          nor what is `documented`.
inline words disagreements(const std::vector<verb>& verbs, const std::vector<kind>& kinds,
                           const std::vector<difference>& documented = {}) {
  const auto agree = [&](pair& trial) {
    trial.await_end();
    return trial.reference == trial.result ||
           std::any_of(documented.begin(), documented.end(),
                       [&](const difference& entry) { return entry.covers(trial); });
  };
  words answer;
  std::list<pair> at_once;
  const auto compare = [&] {
    for (pair& trial : at_once) {
      if (agree(trial)) continue;
      pair patiently(trial.calls, trial.subject, 200ms);  // on a busy machine all takes longer
      if (!agree(patiently)) answer.push_back(patiently.text());
    }
    at_once.clear();
  };
  const std::size_t step = pairs_per_try();
  for (std::size_t i = 0; i < verbs.size(); ++i) {
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      if ((i + k) % step != 0) continue;
      at_once.emplace_back(verbs[i], kinds[k], 20ms);
      if (at_once.size() == 8) compare();
    }
  }
  compare();
  return answer;
}

inline void check_agreement(const std::vector<verb>& verbs, const std::vector<kind>& kinds,
                            const std::vector<difference>& documented = {}) {
  const words differences = disagreements(verbs, kinds, documented);
  for (const std::string& text : differences) FAIL_CHECK(text);  // one by one, to be read
  CHECK(differences.empty());
}

}  // namespace testing
